"""When frames are drawn: soon after something happened, and now and then while something moves by itself."""

import asyncio
from collections.abc import Callable

FRAMES, TICKS = 15, 8
"""Frames a second while text streams in, and while only a spinner turns."""


class Pace:
    """Calls `draw` at most so often, and not at all while nothing happens."""

    def __init__(self, draw: Callable[[], None], is_busy: Callable[[], bool], spins: Callable[[], bool]) -> None:
        self._draw = draw
        self._is_busy = is_busy
        self._spins = spins
        self._frame: asyncio.TimerHandle | None = None
        self._tick: asyncio.TimerHandle | None = None

    def request_frame(self) -> None:
        """Draw soon; many requests make one frame."""
        if self._frame is None:
            self._frame = asyncio.get_running_loop().call_later(1 / FRAMES, self._draw_frame)

    def _draw_frame(self) -> None:
        self._frame = None
        self._draw()
        self._go_on()

    def _go_on(self) -> None:
        if self._tick is None and self._is_busy():
            seconds = 1 / TICKS if self._spins() else 1.0
            self._tick = asyncio.get_running_loop().call_later(seconds, self._draw_tick)

    def _draw_tick(self) -> None:
        self._tick = None
        if self._frame is None:
            self._draw()
        self._go_on()
