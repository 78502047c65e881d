"""The prompts of a program without an event loop, one after the other, each in a loop of its own or all in one."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import GEN_SUSPENDED, getgeneratorstate
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
        self._events: Callable[[], Generator[LoopEvent, None, None] | None] = lambda: None
        """The events that are being read, as long as something refers to them."""
        self._reader = 0
        """The thread that read the last of them."""

    def open(self) -> None:
        """Use one loop for all prompts until `close`."""
        if self._shared is None:
            self._shared = _new_runner()

    def ask(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """What `work` returns."""
        self._leave_events(unfinished=False)
        with self._alone():
            runner = self._shared or _new_runner()
            try:
                return runner.run(work())
            finally:
                self._finish(runner, None)

    def events(self, run: Run) -> Generator[LoopEvent, None, None]:
        """The events of a run, which works while the next one is waited for."""
        own = list[weakref.ref[Generator[LoopEvent, None, None]]]()
        events = self._read(run, own)
        own.append(weakref.ref(events))
        return events

    def _read(
        self, run: Run, own: "list[weakref.ref[Generator[LoopEvent, None, None]]]"
    ) -> Generator[LoopEvent, None, None]:
        self._leave_events(unfinished=False)
        with self._alone():
            (self._events,) = own
            runner = self._shared or _new_runner()
            try:
                while True:
                    self._reader = threading.get_ident()
                    try:
                        event = runner.run(run.__anext__())
                    except StopAsyncIteration:
                        return
                    yield event
            finally:
                _run_outside_loops(partial(self._finish, runner, run))

    def close(self) -> None:
        """Close the session for good."""
        self._leave_events(unfinished=True)
        with self._alone():
            runner, self._shared = self._shared or _new_runner(), None
            with runner:
                runner.run(self._session.aclose())

    def _leave_events(self, *, unfinished: bool) -> None:
        """Close events that this thread refers to and does not read any more: of a run that is over, or of any run."""
        events = self._events()
        if events is None or self._reader != threading.get_ident() or getgeneratorstate(events) != GEN_SUSPENDED:
            return
        if unfinished or not self._session.conversation.running:
            events.close()

    def _finish(self, runner: asyncio.Runner, run: Run | None) -> None:
        """End the run, and the connections and the loop with it, if these are not for the next prompt as well."""
        try:
            _forget_stop(runner)
            if run is not None:
                runner.run(run.aclose())
        finally:
            _forget_stop(runner)
            if runner is not self._shared:
                with runner:
                    runner.run(self._session.disconnect())
            elif self._session.conversation.running:  # a second Ctrl+C left it in the middle
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


def _forget_stop(runner: asyncio.Runner) -> None:
    """Take back the order to stop that a second Ctrl+C leaves in a loop."""
    loop = runner.get_loop()
    loop.call_soon(loop.stop)
    loop.run_forever()


def _run_outside_loops(work: Callable[[], None]) -> None:
    """Run the work in this thread or, if a loop runs here that happens to drop the events, in another one."""
    if asyncio._get_running_loop() is None:  # unlike the public function, it never raises
        work()
        return
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


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
