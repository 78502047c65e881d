"""A call that the model is still writing, in one line."""

from collections.abc import Callable
from typing import TypeAlias

from handrail.tools.cards import Card
from handrail.tui.call_lines import label

DrawDraft: TypeAlias = Callable[[str, str], Card]
"""Makes the card of a tool's call from the beginning of its JSON."""
KEPT = 2_000
"""Characters of the JSON that a card is made from: what a call is about comes first."""
BIG = 1_000


class CallDraft:
    """Keeps the beginning of the input; adding to it costs the same however long it gets."""

    def __init__(self, name: str, draw: DrawDraft | None) -> None:
        self._name = name
        self._draw = draw
        self._beginning = ""
        self._size = 0
        self._drawn = -1
        self._label = name

    def add(self, fragment: str) -> None:
        """More of the input has arrived."""
        if len(self._beginning) < KEPT:
            self._beginning = (self._beginning + fragment)[:KEPT]
        self._size += len(fragment)

    def line(self) -> str:
        """What the model writes, and how much of it has come."""
        if self._draw is not None and self._drawn != len(self._beginning):
            self._drawn = len(self._beginning)
            self._label = label(self._draw(self._name, self._beginning))
        size = f", {self._size / 1000:.1f} kB" if self._size >= BIG else ""
        return f"writing {self._label}{size}"
