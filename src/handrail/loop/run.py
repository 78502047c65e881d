"""
A run: one prompt to its end, as an async iterator of events.

    async for event in run: ...

The next request is made when the events of the turn before have been read: a run that is not read does nothing.
Leaving it early is safe: `aclose` waits until nothing of it runs; a run that is dropped stops by itself.
"""

import asyncio
import weakref
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, cast

from handrail.conversation.messages import UserMessage
from handrail.conversation.request import History
from handrail.dispatch.threads import in_loop
from handrail.lazy import lazy
from handrail.loop.agent_loop import AgentLoop
from handrail.loop.attempt_task import check_loop
from handrail.loop.conversation_state import ConversationState
from handrail.loop.events import LoopEvent, RunEnded
from handrail.loop.run_config import RunConfig
from handrail.loop.run_hooks import Expansion
from handrail.loop.state import RunState
from handrail.tools.abort import AbortReason, AbortSignal

if TYPE_CHECKING:
    from handrail.loop import notebook
else:
    notebook = lazy("handrail.loop.notebook")


class Run:
    """The reader's end of an agent loop. The loop holds no reference to it, so that dropping it is noticed at once."""

    def __init__(
        self,
        config: RunConfig,
        conversation: ConversationState,
        prompt: UserMessage,
        expansion: Expansion | None = None,
        *,
        instructions: str | None = None,
    ) -> None:
        """With `instructions` for a summary, which may be empty, the run only compacts the history."""
        self.signal = AbortSignal()
        """Aborting this signal stops the run, from anywhere in the thread of its event loop."""
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._is_interrupted = False
        self._loop = AgentLoop(config, conversation, prompt, expansion, instructions=instructions, signal=self.signal)
        self._events = cast("AsyncGeneratorType[LoopEvent, None]", self._loop.events(weakref.ref(self)))

    def __aiter__(self) -> "Run":
        return self

    async def __anext__(self) -> LoopEvent:
        if (event := self.take()) is not None:
            return event
        self._event_loop = asyncio.get_running_loop()
        if self._is_interrupted:
            self.signal.abort(AbortReason.USER)
        try:
            return await self._events.__anext__()
        except StopAsyncIteration:
            raise
        except BaseException:
            await self._loop.leave()
            raise

    def take(self) -> LoopEvent | None:
        """The next event if it has happened already; None = only `async for` knows, which waits for it."""
        if self._is_interrupted or self._events.ag_running:  # what stops it comes first; another task is reading
            return None
        return self._loop.take()

    @property
    def state(self) -> RunState:
        """Where the run stands."""
        return self._loop.state

    @property
    def ended(self) -> RunEnded | None:
        """Its last event, as soon as it is known."""
        return self._loop.ended

    @property
    def history(self) -> History:
        """The conversation that it is part of."""
        return self._loop.history

    @property
    def active(self) -> bool:
        """Whether it has begun and is not over."""
        return self._loop.active

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or was closed; one that has not begun yet is not over."""
        return self._events.ag_frame is None

    def interrupt(self) -> None:
        """Stop everything, from any thread; RunEnded follows when it has stopped."""
        self._is_interrupted = True  # first, for a run that begins in another thread just now and has no loop yet
        if self._event_loop is not None:
            in_loop(self._event_loop, self.signal.abort, AbortReason.USER)

    def check_close(self) -> None:
        """HandrailError if closing it here would wait for ever: in what the run waits for, or in another loop."""
        if self.active and self._event_loop is not None and not self._event_loop.is_closed():
            self._loop.check_leave()
            check_loop(self._event_loop)

    async def aclose(self) -> None:
        """
        Stop the run and wait until all its work has ended. The history can be continued.

        Raises:
            HandrailError: a tool, hook or permission callback of the run closes it, or another event loop does.
        """
        self.check_close()
        self.signal.abort(AbortReason.USER)
        await self._loop.leave()
        if not self._events.ag_running:  # else another task is reading, and will find that the run was left
            await self._events.aclose()

    def _repr_html_(self) -> str:
        ended = self.ended
        return notebook.ended_html(ended) if ended else f"<i>a run at turn {self.state.turn}, not over yet</i>"

    def __del__(self) -> None:
        # a reader that left its `async for` without closing the run has dropped it: what it started must not go on
        self.interrupt()
