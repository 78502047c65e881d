"""A clock that a test controls."""

import asyncio
from contextlib import AbstractAsyncContextManager

from handrail.providers.client import SystemClock


class VirtualClock(SystemClock):
    """Sleeps end at once and are listed in `slept`; timeouts expire when the test says so."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []
        self._timeouts: list[asyncio.Timeout] = []

    def time(self) -> float:
        """Unix time, which only sleeps advance."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Add to `slept` and advance the time."""
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """A timeout that `expire` ends."""
        timeout = asyncio.timeout(None)
        self._timeouts.append(timeout)
        return timeout

    def expire(self) -> None:
        """Let all open timeouts expire."""
        for timeout in self._timeouts:
            try:
                timeout.reschedule(asyncio.get_running_loop().time())
            except RuntimeError:
                continue  # it has ended
        self._timeouts.clear()
