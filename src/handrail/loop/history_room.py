"""Makes room in the history of a run: before a request that would be too long, after one that was, or when asked to."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from handrail.errors import HandrailError
from handrail.loop.compaction.plan import Compaction, CompactionRequest, SummaryPlan, is_too_long
from handrail.loop.conversation_state import ConversationState
from handrail.loop.event_queue import EventQueue
from handrail.loop.events import Compacted, Summarising
from handrail.loop.interruptible import run_or_abort
from handrail.loop.limits import RunClock
from handrail.loop.progress import RunProgress
from handrail.loop.run_config import RunConfig
from handrail.loop.run_hooks import RunHooks
from handrail.loop.turn import Attempt
from handrail.tools.abort import AbortSignal

Result = TypeVar("Result")


class HistoryRoom:
    """The room in the history of one run. With `instructions`, which may be empty, a user asked for a summary."""

    clock: RunClock
    """The clock of the run, from its start on."""

    def __init__(
        self,
        config: RunConfig,
        conversation: ConversationState,
        hooks: RunHooks,
        progress: RunProgress,
        queue: EventQueue,
        *,
        signal: AbortSignal,
        instructions: str | None,
    ) -> None:
        self._config = config
        self._conversation = conversation
        self._hooks = hooks
        self._progress = progress
        self._queue, self._add, self._emit = queue, queue.add, queue.emit
        self._signal = signal
        self._instructions = instructions
        self._was_made = False

    async def plan(self, *, forced: bool) -> Compaction | SummaryPlan | None:
        """Plan a compaction if one is needed. A summary is announced before it is made."""
        if self._config.compact is None:
            return None
        history = self._conversation.history
        request = CompactionRequest(history, self._config.model_name, history.filled, forced, self._instructions)
        planning = self._config.compact(request)
        planned = None if planning is None else await self._run(planning)
        if not isinstance(planned, SummaryPlan):
            return planned
        if not await self._hooks.allows_summary(self._trigger, self._instructions or "", self.clock.seconds_left):
            if self._instructions is not None:
                self._progress.text = "A hook keeps the conversation as it is."
            return None
        if self._signal.aborted:
            return None
        self._emit(Summarising(on=True))
        return planned

    async def take(self, planned: Compaction | SummaryPlan | None) -> bool:
        """Replace the history as planned. False = the history is unchanged and the run was not interrupted."""
        if isinstance(planned, SummaryPlan):
            try:
                planned = await self._run(planned.summarise())
            finally:
                self._emit(Summarising(on=False))
        if planned is None:
            return self._signal.aborted
        conversation = self._conversation
        before, tokens = len(conversation.history.messages), conversation.history.filled
        conversation.replace_history(planned.messages)
        if planned.kind == "full":
            # the summary may have lost the announcement
            conversation.forget_announcements()
            self._queue.announce_tools()
            self._add(*self._config.reattach(conversation.context))
            self._add(*await self._hooks.after_summary(planned.messages, self._config.model_name, self._trigger))
        if self._instructions is not None:
            self._progress.text = planned.note
        after = len(conversation.history.messages)
        self._emit(Compacted(planned.kind, before, after, tokens, planned.note, self._trigger))
        return True

    async def _run(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """Wait for the compactor as for an answer. If a user asked for it, its failure is the text of the run."""
        try:
            return await run_or_abort(work, self._signal, self.clock.seconds_left)
        except HandrailError as error:
            if self._instructions is None:
                raise
            self._progress.text = self._progress.text or str(error)
            return None

    def is_needed(self, attempt: Attempt) -> bool:
        """Whether the model refused the request as too long, for the first time in this run."""
        if self._was_made or attempt.is_discarded or not (attempt.failure and is_too_long(attempt.failure)):
            return False
        self._was_made = True
        return True

    @property
    def _trigger(self) -> str:
        return "auto" if self._instructions is None else "manual"
