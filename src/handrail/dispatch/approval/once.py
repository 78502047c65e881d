"""ResolveOnce: a question that is answered exactly once, however many try, from whatever thread."""

import asyncio
from threading import Lock
from typing import Generic, TypeVar

from handrail.errors import HandrailError

T = TypeVar("T")


class ResolveOnce(Generic[T]):
    """The first answer counts; all others are told that theirs does not. Made inside a running event loop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        self._answer: list[T] = []
        self.winner = ""
        """Who answered; empty while it is open."""

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

    def resolve(self, who: str, answer: T) -> bool:
        """Answer, if it is still open; whether the answer counts."""
        with self._lock:
            if self._answer:
                return False
            self.winner = who
            self._answer.append(answer)
        try:
            self._loop.call_soon_threadsafe(self._done.set)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return False
        return True

    async def wait(self) -> T:
        """The answer, as soon as there is one."""
        await self._done.wait()
        return self._answer[0]
