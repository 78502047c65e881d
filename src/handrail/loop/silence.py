"""Tells people that a model has not begun to answer."""

import asyncio
from collections.abc import Callable

from handrail.loop.events import Notice

PATIENCE = 8.0
"""Seconds after which it is told."""


class SilenceWatch:
    """Between `start` and `stop`, calls `report` once if that takes long."""

    def __init__(self, model: str, report: Callable[[Notice], None]) -> None:
        self._model = model
        self._report = report
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """A request was sent."""
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._tell)

    def stop(self) -> None:
        """The answer has begun, or is not awaited any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self) -> None:
        self._report(Notice(f"{self._model} has said nothing for {PATIENCE:g} seconds; it is still waited for."))
