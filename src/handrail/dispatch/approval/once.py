"""
ResolveOnce: a question that is answered exactly once, however many try, from whatever thread.

    open -> claimed -> resolved        `resolve` claims by itself; `claim` is for who must do something first
"""

import asyncio
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from handrail.errors import HandrailError

T = TypeVar("T")


class ResolveOnce(Generic[T]):
    """The first who claims it answers; everybody else is told who that was. Made inside a running event loop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        self._answer: list[T] = []
        self._listeners: list[Callable[[str], None]] = []
        self.winner = ""
        """Who claimed it; empty while nobody did."""

    @property
    def is_resolved(self) -> bool:
        """Whether there is an answer."""
        return bool(self._answer)

    @property
    def answer(self) -> T:
        """
        The one answer.

        Raises:
            HandrailError: there is none yet.
        """
        if not self._answer:
            raise HandrailError("the question has not been answered yet")
        return self._answer[0]

    def claim(self, who: str) -> bool:
        """The right to answer: true for the first, and again for nobody. Whoever claims must resolve."""
        with self._lock:
            if self.winner:
                return False
            self.winner = who
            return True

    def resolve(self, who: str, answer: T) -> bool:
        """Answer, if nobody else claimed it; whether the answer counts."""
        with self._lock:
            if self._answer or self.winner not in ("", who):
                return False
            self.winner = who
            self._answer.append(answer)
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(who)
        try:
            self._loop.call_soon_threadsafe(self._done.set)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return False
        return True

    def listen(self, listener: Callable[[str], None]) -> None:
        """Be told who answered, at once if somebody did. Called in the thread of whoever answers."""
        with self._lock:
            if not self._answer:
                self._listeners.append(listener)
                return
        listener(self.winner)

    async def wait(self) -> T:
        """The answer, as soon as there is one."""
        await self._done.wait()
        return self._answer[0]
