"""When frames are drawn: soon after something happened, and now and then while something moves by itself."""

import asyncio
import time
from collections.abc import Callable, Iterator

FRAMES, TICKS = 15, 8
"""Frames a second while text streams in, and while only a spinner turns."""
STEP = 0.001
"""Seconds of drawing after which keys get their turn."""
OVER = object()


class Pace:
    """Draws at most so often, and not at all while nothing happens. `draw` gives the steps of drawing one frame."""

    def __init__(
        self,
        draw: Callable[[], Iterator[None]],
        is_busy: Callable[[], bool],
        spins: Callable[[], bool],
        has_echo: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_echo`: whether the echo of a key is about to be shown; drawing waits for that."""
        self._draw = draw
        self._has_echo = has_echo
        self._is_busy = is_busy
        self._spins = spins
        self._is_wanted = False
        self._steps: Iterator[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tick: asyncio.TimerHandle | None = None

    def request_frame(self) -> None:
        """Draw soon; many requests make one frame."""
        if self._steps is not None:
            self._is_wanted = True
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(1 / FRAMES, self._begin_frame)

    def _begin_frame(self) -> None:
        self._timer = None
        self._steps = self._draw()
        self._go_on()

    def _go_on(self) -> None:
        assert self._steps is not None
        if not self._draw_some(self._steps):
            asyncio.get_running_loop().call_later(0, self._go_on)  # behind keys that have come meanwhile
            return
        self._steps = None
        if self._is_wanted:
            self._is_wanted = False
            self.request_frame()
        if self._tick is None and self._is_busy():
            seconds = 1 / TICKS if self._spins() else 1.0
            self._tick = asyncio.get_running_loop().call_later(seconds, self._on_tick)

    def _draw_some(self, steps: Iterator[None]) -> bool:
        """Draw for a moment; whether nothing is left to draw."""
        until = time.perf_counter() + STEP
        while not self._has_echo():
            if next(steps, OVER) is OVER:
                return True
            if time.perf_counter() > until:
                break
        return False

    def _on_tick(self) -> None:
        self._tick = None
        self.request_frame()
