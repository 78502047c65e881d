"""Tells people that a model has not begun to answer."""

import asyncio
from collections.abc import Callable

from handrail.loop.events import Notice

PATIENCE = 8.0
"""Seconds after which it is told."""


class SilenceWatch:
    """
    Between `start` and `stop`, calls `report` once if that takes long.

    One timer serves all requests of a run: most are answered long before it is due.
    """

    def __init__(self) -> None:
        self._due: float | None = None
        self._model = ""
        self._report: Callable[[Notice], None]
        self._timer: asyncio.TimerHandle | None = None

    def start(self, model: str, report: Callable[[Notice], None]) -> None:
        """A request was sent."""
        loop = asyncio.get_running_loop()
        self._model, self._report, self._due = model, report, loop.time() + PATIENCE
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._look, self._due)

    def stop(self) -> None:
        """The answer has begun, or is not awaited any more."""
        self._due = None

    def close(self) -> None:
        """The run is over."""
        self._due = None
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, due: float) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._due != due:  # another request was sent since
            self._timer = asyncio.get_running_loop().call_at(self._due, self._look, self._due)
        else:
            self._report(Notice(f"{self._model} has said nothing for {PATIENCE:g} seconds; it is still waited for."))
