"""Secrets are looked for where they can be: the quick search misses nothing that a search with every pattern finds."""

import random
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.assigned_secrets import NAME_PARTS, NAMES, assigned_values
from handrail.conversation.redact import Redactor
from handrail.conversation.secret_search import (
    COLON,
    FLAG,
    REACH,
    RUN_LENGTH,
    RUN_SIGNS,
    WORD_LENGTH,
    Secret,
    find_secrets,
    pattern_of,
    small_letters,
)
from handrail.conversation.secret_shapes import GATED, IN_RUNS, SHAPES, WITH_COLON, WITH_FLAG, WITH_WORD, Shape

op: Any = import_module("re._constants")  # no public name, and no types
parser: Any = import_module("re._parser")

CHARS = [chr(code) for code in range(0x250)]
LETTERS = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


class Unit:
    """A part of a pattern: what it can match, at least how much of it, and the letter if it is one."""

    def __init__(self, chars: frozenset[str], width: int, literal: str = "\0") -> None:
        self.width, self.literal = width, literal
        self.in_word = chars <= LETTERS
        self.in_run = all(char > "\x7f" or char in LETTERS or char in RUN_SIGNS for char in chars)


def units(parsed: Any) -> Iterator[Unit]:
    """The parts of a parsed pattern in order. What it looks back at is part of it, what it looks ahead at is not."""
    for kind, value in parsed:
        if kind is op.SUBPATTERN:
            yield from units(value[3])
        elif kind is op.ASSERT and value[0] < 0:
            yield from units(value[1])
        elif kind not in (op.ASSERT, op.ASSERT_NOT, op.AT):
            yield _unit(kind, value)


def _unit(kind: Any, value: Any) -> Unit:
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, _, repeated = value
        return Unit(_chars(repeated), least * repeated.getwidth()[0])
    if kind is op.BRANCH:
        return Unit(frozenset().union(*map(_chars, value[1])), min(each.getwidth()[0] for each in value[1]))
    return Unit(_chars([(kind, value)]), 1, chr(value) if kind is op.LITERAL else "\0")


def _chars(parsed: Any) -> frozenset[str]:
    """The characters that a pattern can match, as far as this test looks at them."""
    found: set[str] = set()
    for kind, value in parsed:
        if kind in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
            shape = re.compile(_one_char(kind, value))
            found |= {char for char in CHARS if shape.match(char)}
        elif kind is op.SUBPATTERN:
            found |= _chars(value[3])
        elif kind is op.BRANCH:
            found |= frozenset().union(*map(_chars, value[1]))
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            found |= _chars(value[2])
    return frozenset(found)


def _one_char(kind: Any, value: Any) -> str:
    if kind is op.ANY:
        return "."
    if kind is not op.IN:
        return f"[{'^' if kind is op.NOT_LITERAL else ''}{re.escape(chr(value))}]"
    categories = {
        op.CATEGORY_WORD: r"\w",
        op.CATEGORY_SPACE: r"\s",
        op.CATEGORY_DIGIT: r"\d",
        op.CATEGORY_NOT_SPACE: r"\S",
    }
    members = [
        "^"
        if member is op.NEGATE
        else categories[what]
        if member is op.CATEGORY
        else f"{re.escape(chr(what[0]))}-{re.escape(chr(what[1]))}"
        if member is op.RANGE
        else re.escape(chr(what))
        for member, what in value
    ]
    return f"[{''.join(members)}]"


def run_with(literal: str, shape: str) -> list[Unit]:
    """The parts of a shape around its literal that match nothing but letters, digits and signs."""
    parsed = parser.parse(shape)
    if len(parsed) == 1 and parsed[0][0] is op.BRANCH:  # only one of the halves is removed
        parsed = next(each for each in parsed[0][1][1] if each[0][0] is op.SUBPATTERN)
    runs: list[list[Unit]] = [[]]
    for unit in units(parsed):
        if unit.in_run:
            runs[-1].append(unit)
        else:
            runs.append([])
    return next(run for run in runs if literal in "".join(unit.literal for unit in run))


def longest_word(run: list[Unit]) -> int:
    longest = width = 0
    for unit in run:
        width = width + unit.width if unit.in_word else 0
        longest = max(longest, width)
    return longest


def rows(table: dict[str, tuple[Shape, ...]]) -> list[Any]:
    return [pytest.param(key, *shape[1:], id=f"{shape[0]} {shape[1]}") for key in table for shape in table[key]]


@pytest.mark.proves("R10")
@pytest.mark.parametrize(("sign", "literal", "shape"), rows(IN_RUNS))
def test_the_literal_of_a_shape_in_runs_is_part_of_a_long_run_with_its_sign(
    sign: str, literal: str, shape: str
) -> None:
    run = run_with(literal, shape)

    assert sum(unit.width for unit in run) >= RUN_LENGTH
    assert sign in "".join(unit.literal for unit in run)


@pytest.mark.proves("R10")
@pytest.mark.parametrize(("sign", "literal", "shape"), rows(WITH_WORD))
def test_the_literal_of_a_shape_with_a_word_is_part_of_one_run_with_the_word_and_its_sign(
    sign: str, literal: str, shape: str
) -> None:
    run = run_with(literal, shape)

    assert longest_word(run) >= WORD_LENGTH
    assert sign in "".join(unit.literal for unit in run)


@pytest.mark.proves("R10")
@pytest.mark.parametrize(("gate", "literal", "shape"), rows(GATED))
def test_the_literal_of_a_shape_behind_a_gate_holds_the_gate_and_is_in_every_match(
    gate: str, literal: str, shape: str
) -> None:
    assert gate in literal.lower()
    assert len(literal) <= REACH
    assert literal in "".join(unit.literal for unit in units(parser.parse(shape)))


def test_every_name_has_one_of_the_parts_that_are_looked_for_first() -> None:
    assert all(any(part in name for part in NAME_PARTS) for name, _ in NAMES)


@pytest.mark.parametrize(("label", "literal", "shape"), [shape for shape in SHAPES if shape[2].startswith("(?i)")])
def test_a_pattern_without_case_begins_with_its_literal(label: str, literal: str, shape: str) -> None:
    begin = re.escape(literal).replace(r"\-", "-")

    assert literal.islower(), label
    assert pattern_of(literal, shape).pattern.startswith(f"(?i){begin}"), label


# Texts that match a shape, or nearly do


def drawn(parsed: Any, chance: random.Random) -> str:
    """A text that a parsed pattern matches, but for what it only looks at."""
    return "".join([_drawn(kind, value, chance) for kind, value in parsed])


def _drawn(kind: Any, value: Any, chance: random.Random) -> str:
    if kind in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
        shape = re.compile(_one_char(kind, value))
        return chance.choice([char for char in [*CHARS[9:127], "\x85", "é"] if shape.match(char)])
    if kind is op.SUBPATTERN:
        return drawn(value[3], chance)
    if kind is op.BRANCH:
        return drawn(chance.choice(value[1]), chance)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, most, repeated = value
        return "".join([drawn(repeated, chance) for _ in range(chance.choice((least, min(most, least + 3))))])
    return drawn(value[1], chance) if kind is op.ASSERT and value[0] < 0 else ""


def every_pattern(text: str) -> list[Secret]:
    """What is found if each pattern is tried at each place."""
    found = []
    for label, _, shape in SHAPES:
        pattern = re.compile(shape)
        group = "secret" if pattern.groupindex else 0
        found += [(*match.span(group), label) for match in pattern.finditer(text) if match[group]]
    for start, end, is_password in assigned_values(text, small_letters(text), NAME_PARTS):
        found.append((start, end, "password" if is_password else "assigned-key"))
    return found


PIECES = st.sampled_from(
    (
        *(
            " ",
            "\n",
            "\t",
            "\\n",
            '"',
            "'",
            "=",
            ":",
            "-",
            "_",
            ".",
            "/",
            "@",
            "&",
            "?",
            ",",
            "$",
            "x",
            "1",
            "é",
            "\u2028",
        ),
        *(
            "pass",
            "password",
            "PASSWORD=",
            "token",
            "secret",
            "key",
            "pwd",
            "psk",
            "auth",
            "login ",
            "cookie: a=",
            "xox",
        ),
        *("Bearer ", " -p ", " --user me:", "sudo -S ", "curl ", "zip ", "echo ", "| ", "://", ":5432:", ":*:", "%3d"),
        *(
            "hunter2!x",
            "a1B2c3D4e5F6g7H8i9J0",
            "[redacted:",
            "\u0130",
            "\u0131",
            "\u017f",
            "\u212a",
            "\ud800",
            "word " * 400,
        ),
    )
)
AROUND = st.lists(PIECES, max_size=6).map("".join)


@pytest.mark.proves("R10")
@given(st.sampled_from(SHAPES), st.integers(0, 2**32), AROUND, AROUND)
def test_what_any_pattern_finds_is_found(shape: Shape, seed: int, before: str, after: str) -> None:
    text = before + drawn(parser.parse(shape[2]), random.Random(seed)) + after

    assert sorted(find_secrets(text)) == sorted(every_pattern(text))


@pytest.mark.proves("R10")
@given(st.lists(PIECES | st.sampled_from([literal for _, literal, _ in SHAPES]), max_size=25).map("".join))
def test_a_text_that_is_passed_over_has_nothing_that_any_pattern_finds(text: str) -> None:
    assert sorted(find_secrets(text)) == sorted(every_pattern(text))


@pytest.mark.proves("R10")
@pytest.mark.parametrize("shape", [*WITH_FLAG, *WITH_COLON], ids=lambda shape: f"{shape[0]} {shape[1]}")
def test_what_a_shape_with_a_flag_or_a_colon_matches_has_one(shape: Shape) -> None:
    texts = [drawn(parser.parse(shape[2]), random.Random(seed)) for seed in range(50)]

    assert all((FLAG if shape in WITH_FLAG else COLON).search(text) for text in texts if re.search(shape[2], text))


def test_a_token_is_found_between_words_of_any_length_and_in_texts_without_blanks() -> None:
    token = "sk_" + "live_" + "a1b2c3d4e5f6g7h8"
    redactor = Redactor()

    for text in (
        token,
        f"a {token} b",
        f"{'word ' * 2_000}{token}\x85x",
        f'{{"a":"{token}","b":[1,2]}}',
        f"\t{token}\n",
    ):
        assert redactor.text(text) == text.replace(token, "[redacted:stripe-key]")
