"""Finds the positions of values in a JSON text, so that one can be changed without touching the rest."""

import json
from typing import Any

from handrail.lazy import lazy_pattern
from handrail.records import record

BLANKS = lazy_pattern(r"[ \t\n\r]*")
DECODER = json.JSONDecoder()


@record
class JsonSpan:
    """A value and its position in the text."""

    value: Any
    start: int
    end: int
    key_start: int = 0
    """For a member of an object: where its key begins."""


def value_at(text: str, at: int) -> JsonSpan:
    """The value that begins at the next character that is not whitespace."""
    start = _skip(text, at)
    value, end = DECODER.raw_decode(text, start)
    return JsonSpan(value, start, end)


def members(text: str, start: int) -> dict[str, JsonSpan]:
    """The members of the object that begins there; of a repeated key the last one, as JSON parsers do."""
    found: dict[str, JsonSpan] = {}
    at = _skip(text, start + 1)
    while text[at] != "}":
        key = value_at(text, at)
        value = value_at(text, _skip(text, key.end) + 1)
        found[key.value] = JsonSpan(value.value, value.start, value.end, key.start)
        at = _next(text, value.end)
    return found


def elements(text: str, start: int) -> list[JsonSpan]:
    """The elements of the list that begins there."""
    found: list[JsonSpan] = []
    at = _skip(text, start + 1)
    while text[at] != "]":
        found.append(value_at(text, at))
        at = _next(text, found[-1].end)
    return found


def _next(text: str, end: int) -> int:
    """The position of the next item or of the closing bracket."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    found = BLANKS.match(text, at)
    return found.end() if found else at
