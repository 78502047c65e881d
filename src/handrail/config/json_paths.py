"""Paths to values in JSON, and positions in its text."""

from collections.abc import Sequence
from typing import TypeAlias

JsonPath: TypeAlias = tuple[str | int, ...]
"""The path to a value: keys of objects, indexes of lists."""

MAX_DEPTH = 64


def line_of(text: str, offset: int) -> int:
    """The line, counted from 1, that an offset lies in."""
    return text.count("\n", 0, offset) + 1


def column_of(text: str, offset: int) -> int:
    """The column, counted from 1."""
    return offset - text.rfind("\n", 0, offset)


def format_path(path: Sequence[str | int]) -> str:
    """A path as people write it: `permissions.allow[2]`."""
    out = ""
    for step in path:
        out += f"[{step}]" if isinstance(step, int) else f".{step}" if out else step
    return out
