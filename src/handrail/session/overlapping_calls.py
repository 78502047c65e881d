"""
Calls of a session that come one by one, from any of its tasks, and not as the answer of a model.

Calls that overlap share an executor, so that those in conflict run in the order in which they came. When none is left,
the executor is closed, and the next call gets a new one.
"""

import asyncio
from dataclasses import replace

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.errors import HandrailError
from handrail.session.session import Session
from handrail.tools.outcome import Outcome
from handrail.tools.pool import Pool

MAX_CALLS = 1_000
"""
How many calls an executor takes, because it remembers each; the next ones wait until these are over. So do calls that
come when there are other tools than it knows.
"""


class OverlappingCalls:
    """Runs the calls of one session. A call that fails stops no other: it is not known which belong together."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._executor: ToolExecutor | None = None
        self._pool = self._newest_pool
        self._taken = self._unfinished = 0
        self._idle = asyncio.Event()
        self._is_closed = False

    async def run(self, use: ToolUse) -> Outcome:
        """How the call ended; cancelling it stops the call. HandrailError if the session was closed."""
        while self._executor is not None and (self._taken >= MAX_CALLS or self._pool is not self._newest_pool):
            await self._idle.wait()
        if self._is_closed:
            raise HandrailError(f"{use.name} was not run: its session was closed. Close the session after its calls.")
        executor = self._executor = self._executor or await self._open().__aenter__()
        self._taken += 1
        self._unfinished += 1
        try:
            return await executor.execute(use)
        finally:
            self._unfinished -= 1
            if not self._unfinished:
                await self._close(executor)

    @property
    def _newest_pool(self) -> Pool:
        return self._session.conversation.state.catalog.pool

    def _open(self) -> ToolExecutor:
        config, state = self._session.conversation.config, self._session.conversation.state
        self._pool = self._newest_pool
        executor = ToolExecutor(
            self._pool,
            state.context,
            state.store,
            rails=config.rails,
            scheduling=replace(config.scheduling, sibling_errors="isolate"),
            activate=state.catalog.activate,
            add_tools=state.catalog.add,
        )
        executor.finish()  # nothing is held back for the end of an answer
        self._taken = 0
        self._idle.clear()
        return executor

    async def _close(self, executor: ToolExecutor) -> None:
        self._executor = None
        self._session.conversation.state.context = executor.run
        self._idle.set()
        await executor.aclose()

    async def aclose(self) -> None:
        """Stop the calls that run, wait until they have stopped, and take no more."""
        self._is_closed = True
        if self._executor is not None:
            await self._executor.aclose()
