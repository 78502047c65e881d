"""An event loop with virtual time: sleeping costs no time, and the order of events is exact."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the time instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self.elapsed += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """
    An event loop whose time moves only when nothing is left to do.

    Real threads, sockets and processes still work, but time does not wait for them: use it for pure programs.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        # what is due is compared with the time plus this, and a nanosecond more than a year is no more than a year
        self._clock_resolution = 1e-6

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  # the name of the base class
        """Threads live in real time: a limit of virtual seconds would be over at once."""
        await super().shutdown_default_executor()

    def time(self) -> float:
        return self._jumping.elapsed


def run_virtual(main: Coroutine[Any, Any, Result]) -> Result:
    """Like `asyncio.run`, on a virtual clock that starts at zero."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
