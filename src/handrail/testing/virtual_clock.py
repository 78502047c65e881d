"""A clock that stands still until a test moves it."""

import asyncio
from contextlib import AbstractAsyncContextManager


class VirtualClock:
    """Sleeps end at once and are written down; timeouts fire when a test says so."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []
        self._timeouts: list[asyncio.Timeout] = []

    def time(self) -> float:
        """Unix time, moved by sleeps alone."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Remember and move on."""
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """A timeout that `expire` lets run out."""
        timeout = asyncio.timeout(None)
        self._timeouts.append(timeout)
        return timeout

    def expire(self) -> None:
        """All open timeouts run out now."""
        for timeout in self._timeouts:
            try:
                timeout.reschedule(asyncio.get_running_loop().time())
            except RuntimeError:
                continue  # it has ended
        self._timeouts.clear()
