"""Shapes of secrets that stand in one word are looked for in long words only: what matches them must be one."""

from importlib import import_module
from typing import Any

import pytest

from handrail.conversation.redact import Redactor
from handrail.conversation.secret_shapes import SHAPES, SPANS_WORDS, WORD_LENGTH

op: Any = import_module("re._constants")  # no public name, and no types
parser: Any = import_module("re._parser")


def may_match_blank(parsed: Any) -> bool:
    """Whether a text that a parsed pattern matches can contain a blank; what it only looks at does not count."""
    return any(_may_be_blank(kind, value) for kind, value in parsed)


def _may_be_blank(kind: Any, value: Any) -> bool:
    if kind in (op.ASSERT, op.ASSERT_NOT, op.AT):
        return False
    if kind is op.LITERAL:
        return chr(value).isspace()
    if kind is op.IN:
        return _class_has_blank(value)
    if kind is op.SUBPATTERN:
        return may_match_blank(value[3])
    if kind is op.BRANCH:
        return any(map(may_match_blank, value[1]))
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return may_match_blank(value[2])
    return True  # what is not known here may match anything


def _class_has_blank(members: Any) -> bool:
    if members[0][0] is op.NEGATE:
        return (op.CATEGORY, op.CATEGORY_SPACE) not in members
    blank_ranges = [(low, high) for kind, (low, high) in _ranges(members) if any(map(str.isspace, _chars(low, high)))]
    others = {value for kind, value in members if kind is op.CATEGORY} - {op.CATEGORY_WORD, op.CATEGORY_DIGIT}
    return bool(blank_ranges or others)


def _ranges(members: Any) -> list[Any]:
    literals = [(op.RANGE, (value, value)) for kind, value in members if kind is op.LITERAL]
    return [*literals, *(member for member in members if member[0] is op.RANGE)]


def _chars(low: int, high: int) -> list[str]:
    return [chr(code) for code in range(low, high + 1)]


@pytest.mark.proves("R10")
@pytest.mark.parametrize(("label", "literal", "shape"), SHAPES)
def test_what_a_shape_of_one_word_matches_is_a_long_word(label: str, literal: str, shape: str) -> None:
    parsed = parser.parse(shape)

    is_long_word = parsed.getwidth()[0] >= WORD_LENGTH and not may_match_blank(parsed)

    assert is_long_word or literal in SPANS_WORDS, f"{label}: add {literal!r} to SPANS_WORDS"


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
