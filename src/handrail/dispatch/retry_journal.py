"""Remembers the calls of discarded answers, so that a retry does not repeat their side effects."""

import json

from handrail.conversation.blocks import Json
from handrail.tools.outcome import Outcome


class RetryJournal:
    """
    The changing calls that had started when their answer was discarded; each can be claimed once.

    It belongs to one request and its retries: a call in a later turn is meant to run again.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], list[Outcome | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def record(self, tool: str, raw: Json, outcome: Outcome | None) -> None:
        """Record a started call; no outcome = it was cut off, and what it did is unknown."""
        self._entries.setdefault(_key(tool, raw), []).append(outcome)

    def claim(self, tool: str, raw: Json) -> tuple[bool, Outcome | None]:
        """Whether an equal call was started before, and how it ended."""
        key = _key(tool, raw)
        entries = self._entries.get(key)
        if not entries:
            return False, None
        outcome = entries.pop(0)
        if not entries:
            del self._entries[key]
        return True, outcome


def _key(tool: str, raw: Json) -> tuple[str, str]:
    return tool, json.dumps(raw, sort_keys=True, default=repr)
