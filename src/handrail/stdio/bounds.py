"""Shortens lines that are too long for their readers: programs give up on lines above one megabyte."""

from collections.abc import Mapping
from typing import Any

from handrail.conversation.plain import plain_json

LINE_LIMIT = 1_000_000
PIECES = (200_000, 50_000, 10_000, 2_000, 200, 20)


def shorter(line: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """The line with data beside a result left out and its longest texts cut, so that it fits; what was cut says so."""
    made = dict(line)
    if isinstance(made.get("tool_use_result"), dict | list):
        made["tool_use_result"] = None
    for piece in PIECES:
        if _size(made) > limit:
            made = _cut(made, piece)
    if _size(made) <= limit:
        return made
    # so many short texts that no cut helps: what the reader needs to go on is kept
    kept = {name: value for name, value in made.items() if not isinstance(value, dict | list)}
    return {**kept, "cut": f"the rest of this line was longer than {limit:,} bytes"}


def _size(line: Mapping[str, Any]) -> int:
    return len(plain_json(line).encode())


def _cut(value: Any, piece: int) -> Any:
    match value:
        case {"type": "image" | "document" as kind, "source": {"data": str(data)}} if len(data) > piece:
            return {"type": "text", "text": f"[{kind} of {len(data):,} characters, left out of this line]"}
        case str() if len(value) > piece:
            return f"{value[:piece]}\n[{len(value) - piece:,} more characters left out of this line]"
        case dict():
            return {name: _cut(each, piece) for name, each in value.items()}
        case list():
            return [_cut(each, piece) for each in value]
        case _:
            return value
