"""ResolveOnce: a question that takes exactly one answer, from any thread."""

import asyncio
from threading import Lock
from typing import Generic, TypeVar

from handrail.errors import HandrailError

T = TypeVar("T")


class ResolveOnce(Generic[T]):
    """Keeps the first answer; later ones are refused. Create it inside a running event loop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        self._answer: list[T] = []
        self.winner = ""
        """The name of the one that answered; empty while open."""

    @property
    def is_resolved(self) -> bool:
        """Whether there is an answer."""
        return bool(self._answer)

    @property
    def answer(self) -> T:
        """The one answer; HandrailError if there is none yet."""
        if not self._answer:
            raise HandrailError("the question has not been answered yet")
        return self._answer[0]

    def resolve(self, who: str, answer: T) -> bool:
        """Give an answer; returns whether it is the one that counts."""
        with self._lock:
            if self._answer:
                return False
            self.winner = who
            self._answer.append(answer)
        try:
            self._loop.call_soon_threadsafe(self._done.set)
        except RuntimeError:  # the loop is closed, so no task waits
            return False
        return True

    async def wait(self) -> T:
        """The answer, as soon as there is one."""
        await self._done.wait()
        return self._answer[0]
