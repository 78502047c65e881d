"""The prompts of a program without an event loop: each gets a loop of its own, one after the other."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from handrail.errors import HandrailError
from handrail.loop.events import LoopEvent
from handrail.loop.run import Run
from handrail.session.session import Session

Result = TypeVar("Result")


class BlockingPrompts:
    """
    Runs prompts of a session to their end, without a loop of the caller.

    A prompt disconnects the session at its end, because connections cannot outlive the loop that they belong to. So a
    second prompt is refused before it touches the session, from whatever thread it comes.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._busy = threading.Lock()

    def ask(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """What `work` returns, in a loop that ends with it."""
        with self._alone(), asyncio.Runner() as runner:
            try:
                return runner.run(work())
            finally:
                runner.run(self._session.disconnect())

    def events(self, run: Run) -> Iterator[LoopEvent]:
        """The events of a run, which works while the next one is waited for."""
        with self._alone(), asyncio.Runner() as runner:
            try:
                while True:
                    try:
                        yield runner.run(run.__anext__())
                    except StopAsyncIteration:
                        return
            finally:
                runner.run(run.aclose())
                runner.run(self._session.disconnect())

    def close(self) -> None:
        """Close the session for good."""
        with self._alone():
            asyncio.run(self._session.aclose())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._busy.acquire(blocking=False):
            raise _is_busy()
        try:
            if self._session.conversation.running:
                raise _is_busy()
            yield
        finally:
            self._busy.release()


def refuse_inside_a_loop(name: str, instead: str) -> None:
    """HandrailError if there is a running loop in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise HandrailError(f"{name}() cannot be used inside a running event loop, which it would block. Use {instead}.")


def _is_busy() -> HandrailError:
    return HandrailError(
        "A prompt is still being worked on. Wait for its answer, use send() to add to it, "
        "or give each thread an Agent of its own."
    )
