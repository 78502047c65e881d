"""Calls of answers that were given up. Asked for again, their side effects are not repeated."""

from collections import defaultdict

from pydantic_core import to_json

from handrail.conversation.blocks import Json
from handrail.tools.outcome import Outcome


class Journal:
    """The changing calls that had started when their answer was discarded, each to be claimed once."""

    def __init__(self) -> None:
        self._entries: defaultdict[tuple[str, bytes], list[Outcome | None]] = defaultdict(list)

    def __bool__(self) -> bool:
        return any(self._entries.values())

    def record(self, tool: str, raw: Json, outcome: Outcome | None) -> None:
        """A started call; no outcome = it was cut off and nobody knows what it did."""
        self._entries[_key(tool, raw)].append(outcome)

    def claim(self, tool: str, raw: Json) -> tuple[bool, Outcome | None]:
        """Whether this very call was started before, and how it ended."""
        entries = self._entries.get(_key(tool, raw))
        return (True, entries.pop(0)) if entries else (False, None)


def _key(tool: str, raw: Json) -> tuple[str, bytes]:
    return tool, to_json(_sorted(raw), fallback=repr)


def _sorted(value: object) -> object:
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case list():
            return [_sorted(item) for item in value]
        case _:
            return value
