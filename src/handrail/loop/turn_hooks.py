"""Hooks after a turn: they may stop a run that would go on, and keep one going that would stop."""

from collections.abc import Callable, Sequence

from handrail.loop.conversation_state import ConversationState
from handrail.loop.progress import RunProgress
from handrail.loop.run_hooks import RunHooks, hook_attachments, hook_note
from handrail.loop.state import RunState, TurnResult, Why
from handrail.tools.outcome import Outcome


class TurnHooks:
    """The hooks after each turn of one run. `add` puts what they say into the history."""

    def __init__(
        self,
        hooks: RunHooks,
        progress: RunProgress,
        conversation: ConversationState,
        add: Callable[..., None],
    ) -> None:
        self._hooks = hooks
        self._progress = progress
        self._conversation = conversation
        self._add = add
        self._cwd = conversation.context.cwd

    async def apply(
        self, state: RunState, turn: TurnResult, outcomes: Sequence[Outcome], left: float | None
    ) -> RunState:
        """The state that a run goes to once the hooks had their say, for at most `left` seconds each."""
        if turn.has_failed and self._progress.failure is not None and state.why is Why.MODEL_FAILED:
            await self._hooks.stop_failure(self._progress.failure, self._progress.text)
        elif state.why is Why.TOOL_RESULTS:
            return await self._after_calls(state, outcomes, left)
        elif state.why is Why.COMPLETED:
            answer, is_blocked = await self._hooks.stop(self._progress.text, left)
            self._add(*hook_attachments(answer))
            if is_blocked and turn.limit:
                return state.to(turn.limit)
            if is_blocked and answer is not None:
                self._add(hook_note(answer.block or ""))
                return state.to(Why.STOP_BLOCKED)
        return state

    async def _after_calls(self, state: RunState, outcomes: Sequence[Outcome], left: float | None) -> RunState:
        before, self._cwd = self._cwd, self._conversation.context.cwd
        if self._cwd != before:
            await self._hooks.cwd_changed(str(before), left)
        self._add(*await self._hooks.permission_denied(outcomes, left))
        answer = await self._hooks.post_tool_batch(outcomes, left)
        self._add(*hook_attachments(answer))
        if answer is not None and (answer.block is not None or answer.stop is not None):
            self._progress.problem = answer.stop or answer.block or ""
            return state.to(Why.HOOK_STOPPED)
        return state
