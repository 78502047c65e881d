"""The calls of one answer, in the order the model asked for them."""

import asyncio
from collections.abc import Callable, Iterator

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.call_state import Call, CallState
from handrail.tools.outcome import Outcome


class AnswerCalls:
    """Hands out outcomes in the order of the calls, and knows whether the answer is complete or discarded."""

    def __init__(self, *, deferrable: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: list[Call] = []
        self._deferrable = deferrable
        self._yielded = 0
        self._unfinished = 0
        self._is_complete = False
        self.is_discarded = False
        self._reader: asyncio.Future[None] | None = None
        self._count_known: asyncio.Future[None] | None = None
        self._whole: asyncio.Future[None] | None = None

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls)

    def add(self, use: ToolUse) -> Call:
        """The next call of the answer."""
        call = Call(len(self._calls), use, self._loop.time())
        self._calls.append(call)
        self._unfinished += 1
        if self._count_known is not None:
            _wake(self._count_known)
        return call

    def finish(self) -> None:
        """No more calls will be added."""
        self._is_complete = True
        if self._count_known is not None:
            _wake(self._count_known)
        if self._whole is not None:
            _wake(self._whole)

    def discard(self) -> None:
        """No more outcomes will be read."""
        self.is_discarded = True
        if self._reader is not None:
            _wake(self._reader)

    def complete(self, call: Call, outcome: Outcome) -> None:
        """A call has its outcome, which leaves when those before it have left."""
        call.outcome = outcome
        call.move(CallState.COMPLETED)
        self._unfinished -= 1
        if self._reader is not None:
            _wake(self._reader)
        if call.waiter is not None:
            _wake(call.waiter)

    def after(self, call: Call) -> list[Call]:
        """The calls behind this one."""
        return self._calls[call.number + 1 :]

    def unfinished_calls(self) -> list[Call]:
        """The calls without an outcome."""
        return [call for call in self._calls if call.unfinished] if self._unfinished else []

    def next_ready(self) -> Outcome | None:
        """The next outcome in order, if it is there."""
        if self.is_discarded or self._yielded == len(self._calls):
            return None
        call = self._calls[self._yielded]
        if call.outcome is not None:
            call.move(CallState.YIELDED)
            self._yielded += 1
        return call.outcome

    @property
    def is_over(self) -> bool:
        """Whether no outcome is left to be read."""
        return self.is_discarded or self._yielded == len(self._calls)

    async def wait(self) -> None:
        """Wait for the next outcome, for one reader."""
        self._reader = self._loop.create_future()
        await self._reader

    async def outcome_of(self, call: Call, stop: Callable[[], None]) -> Outcome:
        """Wait for the outcome of one call. If that is cancelled, `stop` has to end the call, which is waited for."""
        cancelled: asyncio.CancelledError | None = None
        while call.outcome is None:
            call.waiter = self._loop.create_future()
            try:
                await call.waiter
            except asyncio.CancelledError as error:
                cancelled = error
                stop()
        if cancelled is not None:
            raise cancelled
        return call.outcome

    async def wait_until_whole(self) -> None:
        """Wait until the answer is complete: the user is not asked about what may be discarded."""
        if not self._is_complete:
            self._whole = self._whole or self._loop.create_future()
            await asyncio.shield(self._whole)

    async def can_defer(self) -> bool:
        """Only the single call of an answer can be put off; whether it is single is known when the answer ends."""
        if self._deferrable and not self._is_complete and len(self._calls) == 1:
            self._count_known = self._loop.create_future()
            await self._count_known
        return self._deferrable and len(self._calls) == 1


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
