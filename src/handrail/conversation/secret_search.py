"""
Finds secrets in a text, by their shapes and by the names of values.

Most texts have none, and a few searches prove it: see how `secret_shapes` sorts the shapes by what is in each match.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeAlias

from handrail.conversation.assigned_secrets import NAME_PARTS, assigned_values
from handrail.conversation.secret_shapes import (
    EDGE,
    GATED,
    IN_RUNS,
    WITH_COLON,
    WITH_FLAG,
    WITH_WORD,
    Shape,
    behind_edge,
)
from handrail.lazy import lazy_pattern

RUN_SIGNS = "$~:/.-_=+%,"
RUN_LENGTH, WORD_LENGTH = 23, 16
"""No shape of `IN_RUNS` has a shorter run, no shape of `WITH_WORD` a shorter word in its run."""
FLAG = lazy_pattern(r"-(?<![\w-]-)-?[A-Za-z]")
COLON = lazy_pattern(r":(?=//|5432:|\*:)")
"""What is in every text that a shape of `WITH_FLAG` or `WITH_COLON` matches."""
NO_CASE = "(?i)"
LONG_S, DOTLESS_I = ("\N{LATIN SMALL LETTER LONG S}", "s"), ("\N{LATIN SMALL LETTER DOTLESS I}", "i")
"""Small letters that are others for a pattern without case."""
SHORT = 1_000
"""To look for each literal in a shorter text takes less time than to compile these patterns."""

Secret: TypeAlias = tuple[int, int, str]
"""Where a secret begins and ends, and its label."""


def find_secrets(text: str) -> list[Secret]:
    """The secrets of a text. They may overlap."""
    small = small_letters(text)
    without_case = small if small.isascii() else small.replace(*LONG_S).replace(*DOTLESS_I)
    gates = [gate for gate in _GATES if gate in without_case]
    shapes = _possible_shapes(text, without_case, gates)
    names = [gate for gate in gates if gate in NAME_PARTS]
    if not names and not shapes:
        return []
    found = [secret for shape in shapes for secret in _matches(text, without_case, *shape)]
    for start, end, is_password in assigned_values(text, small, names):
        found.append((start, end, "password" if is_password else "assigned-key"))
    return found


def _possible_shapes(text: str, small: str, gates: Sequence[str]) -> list[Shape]:
    """The shapes whose literals are in a text, where they can match."""
    shapes = _in_runs(text.encode("utf-8", "surrogatepass"))
    for gate in gates:
        near = _around(small, gate)
        shapes += [
            shape
            for shape in GATED.get(gate, ())
            if shape[1].lower() in near and (shape[2].startswith(NO_CASE) or shape[1] in text)
        ]
    is_short = len(text) < SHORT
    if "-" in text and (is_short or FLAG.search(text)):
        shapes += [shape for shape in WITH_FLAG if shape[1] in text]
    if ":" in text and (is_short or COLON.search(text)):
        shapes += [shape for shape in WITH_COLON if shape[1] in text]
    return shapes


def _in_runs(data: bytes) -> list[Shape]:
    """The shapes whose literals stand in long runs, or in runs that have a long word in them."""
    ends = data.translate(_RUN_MARKS)
    if ends.find(_WORD) < 0:  # a word is a run, and no shorter one will do
        return []
    runs = _runs(data, ends, ends, _RUN)
    with_word = _runs(data, ends, data.translate(_WORD_MARKS), _WORD)
    shapes = _literals(IN_RUNS, runs) if runs else []
    return shapes + _literals(WITH_WORD, with_word) if with_word else shapes


def _runs(data: bytes, ends: bytes, marks: bytes, least: bytes) -> str:
    """The runs that have at least these marks, one in a line; a blank in `ends` ends a run."""
    found = []
    at = marks.find(least)
    while at >= 0:
        end = ends.find(b" ", at)
        if end < 0:
            end = len(ends)
        found.append(data[ends.rfind(b" ", 0, at) + 1 : end])
        at = marks.find(least, end)
    return b"\n".join(found).decode("latin-1") if found else ""


def _literals(by_sign: Mapping[str, tuple[Shape, ...]], runs: str) -> list[Shape]:
    return [shape for sign, shapes in by_sign.items() if sign in runs for shape in shapes if shape[1] in runs]


def _around(small: str, gate: str) -> str:
    """What stands around each occurrence of a gate, as far as a literal reaches; all, if that is not much more."""
    if small.count(gate) * 2 * REACH > len(small):
        return small
    parts = []
    at = small.find(gate)
    while at >= 0:
        parts.append(small[max(at - REACH, 0) : at + REACH])
        at = small.find(gate, at + len(gate))
    return "\n".join(parts)


def small_letters(text: str) -> str:
    """The text in small letters, each in its place."""
    small = text.lower()
    if len(small) != len(text):  # this letter is two in small letters
        small = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i").lower()
    return small


def _matches(text: str, small: str, label: str, needle: str, shape: str) -> list[Secret]:
    pattern = pattern_of(needle, shape)
    group = "secret" if pattern.groupindex else 0
    if not shape.startswith(NO_CASE):
        return [(*found.span(group), label) for found in pattern.finditer(text) if found[group]]
    secrets: list[Secret] = []
    at = small.find(needle)  # `re` would try every place of the text
    while at >= 0:
        found = pattern.match(text, at)
        if found is not None:
            secrets.append((*found.span(group), label))
        at = small.find(needle, at + 1 if found is None else found.end())
    return secrets


@cache
def pattern_of(needle: str, shape: str) -> re.Pattern[str]:
    """The pattern of a shape, its literal before its edge: then `re` looks for the literal before anything else."""
    literal = re.escape(needle).replace(r"\-", "-")
    return re.compile(shape.replace(EDGE + literal, literal + behind_edge(literal), 1))


_GATES = tuple(dict.fromkeys((*GATED, *NAME_PARTS)))
REACH = 32
_RUN, _WORD = b"x" * RUN_LENGTH, b"x" * WORD_LENGTH
_WORD_MARKS = bytes(ord("x" if code < 128 and chr(code).isalnum() else " ") for code in range(256))
_RUN_MARKS = bytes(ord("x") if code > 127 or chr(code) in RUN_SIGNS else mark for code, mark in enumerate(_WORD_MARKS))
