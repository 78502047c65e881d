"""The prompts of a program without an event loop, one after the other, each in a loop of its own or all in one."""

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

    Connections cannot outlive the loop that they belong to. From `open` to `close` there is one loop, which stands
    still between prompts, so that servers keep what they know; otherwise each prompt has a loop of its own and
    disconnects the session at its end. A second prompt is refused before it touches the session, from whatever thread
    it comes.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._busy = threading.Lock()
        self._shared: asyncio.Runner | None = None

    def open(self) -> None:
        """Use one loop for all prompts until `close`."""
        if self._shared is None:
            self._shared = _new_runner()

    def ask(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """What `work` returns."""
        with self._runner() as runner:
            return runner.run(work())

    def events(self, run: Run) -> Iterator[LoopEvent]:
        """The events of a run, which works while the next one is waited for."""
        with self._runner() as runner:
            try:
                while True:
                    try:
                        yield runner.run(run.__anext__())
                    except StopAsyncIteration:
                        return
            finally:
                runner.run(run.aclose())

    def close(self) -> None:
        """Close the session for good."""
        with self._alone():
            runner, self._shared = self._shared or _new_runner(), None
            with runner:
                runner.run(self._session.aclose())

    @contextmanager
    def _runner(self) -> Iterator[asyncio.Runner]:
        """What runs a prompt, for it alone."""
        with self._alone():
            if self._shared is not None:
                yield self._shared
                return
            with _new_runner() as runner:
                try:
                    yield runner
                finally:
                    runner.run(self._session.disconnect())

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


def _new_runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=asyncio.new_event_loop)  # it does not become the loop of the program's thread


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
