"""Reads as much as there is of a JSON object that is still arriving."""

import json
from typing import Any

from handrail.conversation.blocks import Json

DECODER = json.JSONDecoder(strict=False)
SPACE = " \t\r\n"
LONGEST_ESCAPE = 6
"""Characters of `\\uXXXX`, which may have arrived in part."""


def arrived_fields(text: str) -> Json:
    """The fields of the object: whole values, and the last one, if it is a string, as far as it has come."""
    fields: dict[str, Any] = {}
    at = _skip(text, 0, SPACE)
    if not text.startswith("{", at):
        return fields
    at += 1
    try:
        while (at := _skip(text, at, SPACE + ",")) < len(text):
            key, at = DECODER.raw_decode(text, at)
            at = _skip(text, at, SPACE)
            if not isinstance(key, str) or not text.startswith(":", at):
                break
            at = _skip(text, at + 1, SPACE)
            if at < len(text) and text[at] == '"':
                fields[key], at = _string(text, at)
                continue
            value, at = DECODER.raw_decode(text, at)
            if at < len(text):  # digits may follow to a number at the end
                fields[key] = value
    except (ValueError, RecursionError):
        return fields
    return fields


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        return DECODER.raw_decode(text, at)
    except ValueError:
        rest = text[at:]
    for missing in range(LONGEST_ESCAPE):
        try:
            value: str = DECODER.decode(rest[: len(rest) - missing] + '"')
        except ValueError:
            continue
        return value[:-1] if "\ud800" <= value[-1:] <= "\udbff" else value, len(text)  # half of a character
    return "", len(text)


def _skip(text: str, at: int, what: str) -> int:
    while at < len(text) and text[at] in what:
        at += 1
    return at
