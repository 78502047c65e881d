"""Slows down a server that sends more messages than anyone can use, so that it takes little of our time."""

import asyncio
import time
from collections.abc import Awaitable, Callable

BURST = 1_000
"""Messages that may come at once."""
BURST_SECONDS, PAUSE = 1.0, 0.1
"""A burst that took less than this is followed by a pause, in seconds."""


class MessagePace:
    """The messages of one stream. While it pauses, nothing is read, so that the sender has to wait as well."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now = now
        self._pause = pause
        self._count = 0
        self._since = now()

    async def keep(self) -> None:
        """Count a message, and pause if there were too many."""
        self._count += 1
        if self._count < BURST:
            return
        if self._now() - self._since < BURST_SECONDS:
            await self._pause(PAUSE)
        self._count, self._since = 0, self._now()
