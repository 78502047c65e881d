"""
Calls that come one by one, from any task of a session, and not as the answer of a model.

Calls that overlap share an executor, so that those in conflict run in the order in which they came. When none is left,
the executor is closed, and the next call gets a new one.
"""

import asyncio
from typing import Protocol

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.errors import HandrailError
from handrail.session.session import Session
from handrail.tools.context import ProgressCallback, RunContext
from handrail.tools.outcome import Outcome
from handrail.tools.pool import AnyTool

MAX_CALLS = 1_000
"""How many calls an executor takes, because it remembers each; the next ones wait until these are over."""


class HasContext(Protocol):
    """Where the context of the next calls is kept; a call may change it."""

    context: RunContext


class OverlappingCalls:
    """Runs the calls of one caller. A call that fails stops no other: it is not known which belong together."""

    def __init__(self, session: Session, holder: HasContext) -> None:
        self._session = session
        self._holder = holder
        self._executor: ToolExecutor | None = None
        self._call_count = self._unfinished = 0
        self._arrival = asyncio.Lock()  # wakes in the order of arrival
        self._idle = asyncio.Event()
        self._is_closed = False

    async def run(
        self, use: ToolUse, *, tool: AnyTool | None = None, on_progress: ProgressCallback | None = None
    ) -> Outcome:
        """
        How the call ended, of this tool or of one that the session offers. Cancelling it stops the call.

        Raises:
            HandrailError: the session was closed.
        """
        async with self._arrival:
            executor = await self._admit(use.name)
        try:
            executor.use_pool(self._session.conversation.state.catalog.pool)
            return await executor.execute(use, tool=tool, on_progress=on_progress)
        finally:
            self._unfinished -= 1
            if not self._unfinished:
                await self._close(executor)

    @property
    def in_progress(self) -> frozenset[str]:
        """The ids of running calls; those that wait for others are not among them."""
        return frozenset() if self._executor is None else self._executor.in_progress

    async def _admit(self, name: str) -> ToolExecutor:
        """The executor for one more call."""
        if self._executor is not None and self._call_count >= MAX_CALLS:
            await self._idle.wait()
        if self._is_closed:
            raise HandrailError(f"{name} was not run: its session was closed. Close the session after its calls.")
        if self._executor is None:
            self._executor = await self._open().__aenter__()
            self._executor.finish()  # nothing is held back for the end of an answer
            self._call_count = 0
            self._idle.clear()
        self._call_count += 1
        self._unfinished += 1
        return self._executor

    def _open(self) -> ToolExecutor:
        config, state = self._session.conversation.config, self._session.conversation.state
        return ToolExecutor(
            state.catalog.pool,
            self._holder.context,
            state.store,
            rails=config.rails,
            scheduling=config.scheduling,
            activate=state.catalog.activate,
            add_tools=state.catalog.add,
        )

    async def _close(self, executor: ToolExecutor) -> None:
        self._executor = None
        self._holder.context = executor.run
        self._idle.set()
        await executor.aclose()

    async def aclose(self) -> None:
        """Stop the calls that run, wait until they have stopped, and take no more."""
        self._is_closed = True
        if self._executor is not None:
            await self._executor.aclose()
