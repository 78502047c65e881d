"""
The hooks of a run: at its prompt, after a batch of calls, before it stops, around a summary.

Every method costs nothing when there is no hook for its event.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import Attachment, Message, UserMessage
from handrail.conversation.stream import StreamFailure
from handrail.hooks.news import HookNews
from handrail.hooks.texts import reminder
from handrail.loop.compaction.summary import SUMMARY
from handrail.loop.conversation_state import ConversationState
from handrail.loop.interruptible import run_or_abort
from handrail.loop.run_config import RunConfig
from handrail.records import record
from handrail.tools.abort import AbortSignal
from handrail.tools.outcome import Outcome
from handrail.tools.permission import Decision, Strength, Verdict
from handrail.tools.request import CallRequest

if TYPE_CHECKING:
    from handrail.hooks.results import HookResult

STOP_BLOCKS = 8
"""How often in a row hooks may keep a run from stopping."""


@record
class Expansion:
    """A command that the user typed, which stands for a longer prompt."""

    name: str
    words: str
    source: str
    typed: str


class RunHooks:
    """The hooks of one run. An answer is None when there is no hook, or the run was interrupted meanwhile."""

    def __init__(
        self,
        config: RunConfig,
        conversation: ConversationState,
        signal: AbortSignal,
        on_news: Callable[[HookNews], None],
    ) -> None:
        self._hooks = config.hooks
        self._background_tasks = config.background_tasks
        self._session_crons = config.session_crons
        self._conversation = conversation
        self._signal = signal
        self._on_news = on_news
        self._blocks = 0

    async def _fire(
        self, event: str, left: float | None = None, *, request: CallRequest | None = None, **fields: object
    ) -> "HookResult | None":
        """Run the hooks of an event, for at most `left` seconds."""
        if self._hooks is None or not self._hooks.wants(event):
            return None
        work = self._hooks.fire(event, fields, self._conversation.context, request=request, on_news=self._on_news)
        return await run_or_abort(work, self._signal, left)

    async def start(self, config: RunConfig) -> tuple[UserMessage | Attachment, ...]:
        """What hooks add at the start of a session or a sub-agent."""
        conversation = self._conversation
        if self._hooks is None:
            return ()
        if not conversation.context.agent.is_main:
            return await self.subagent_start()
        if conversation.session_started:
            return ()
        conversation.session_started = True
        source = conversation.start_source or ("resume" if conversation.history.messages else "startup")
        words = config.first_words if source == "startup" else ""
        first = (UserMessage((Text(words),)),) if words else ()
        return (*await self.session_start(source, config.model_name), *first)

    async def session_start(self, source: str, model: str) -> tuple[UserMessage | Attachment, ...]:
        """What SessionStart hooks add: notes for the model, and a first user message."""
        answer = await self._fire("SessionStart", source=source, model=model)
        first = (UserMessage((Text(answer.first),)),) if answer is not None and answer.first else ()
        return (*hook_attachments(answer), *first)

    async def subagent_start(self) -> tuple[Attachment, ...]:
        """What hooks add at the start of a sub-agent."""
        return hook_attachments(await self._fire("SubagentStart", **self._agent()))

    def _agent(self) -> dict[str, Any]:
        agent = self._conversation.context.agent
        return {} if agent.is_main else {"agent_id": agent.id, "agent_type": agent.type}

    async def prompt(self, message: UserMessage) -> "HookResult | None":
        """The answer of UserPromptSubmit hooks, of the settings as they are now."""
        if self._hooks is not None:
            await self._hooks.refresh(self._conversation.context, self._on_news)
        return await self._fire("UserPromptSubmit", prompt=message_text(message))

    async def expansion(self, command: Expansion | None) -> "HookResult | None":
        """The answer of UserPromptExpansion hooks to the command that became the prompt."""
        if command is None:
            return None
        return await self._fire(
            "UserPromptExpansion",
            expansion_type="slash_command",
            command_name=command.name,
            command_args=command.words,
            command_source=command.source,
            prompt=command.typed,
        )

    async def permission_denied(self, outcomes: Iterable[Outcome], left: float | None) -> tuple[Attachment, ...]:
        """Tell hooks about calls that were refused because no one could be asked; returns what they add."""
        if self._hooks is None or not self._hooks.wants("PermissionDenied"):
            return ()
        notes: list[Attachment] = []
        for outcome in outcomes:
            if outcome.decision is not None and _is_unanswered(outcome.decision):
                fields = {"reason": outcome.decision.reason, **_call_fields(outcome.use)}
                answer = await self._fire("PermissionDenied", left, request=self._request(outcome), **fields)
                notes += hook_attachments(answer)
        return tuple(notes)

    def _request(self, outcome: Outcome) -> CallRequest | None:
        """The call as hook conditions look at it."""
        tool = self._conversation.catalog.pool.find(outcome.use.name)
        return None if tool is None else CallRequest.hypothetical(outcome.use, tool, self._conversation.context)

    async def stop_failure(self, failure: StreamFailure, text: str) -> None:
        """Tell hooks that the run ends because the model failed."""
        kind, details = failure_kind(failure), failure.message
        await self._fire("StopFailure", error=kind, error_details=details, last_assistant_message=text)

    async def cwd_changed(self, before: str, left: float | None) -> None:
        """Tell hooks that the working folder changed."""
        await self._fire("CwdChanged", left, old_cwd=before, new_cwd=str(self._conversation.context.cwd))

    async def post_tool_batch(self, outcomes: Iterable[Outcome], left: float | None) -> "HookResult | None":
        """The answer of PostToolBatch hooks, once all calls of an answer have ended."""
        if self._hooks is None or not self._hooks.wants("PostToolBatch"):
            return None
        calls = [{**_call_fields(each.use), "tool_response": each.result.text} for each in outcomes]
        return await self._fire("PostToolBatch", left, tool_calls=calls)

    async def stop(self, text: str, left: float | None) -> "tuple[HookResult | None, bool]":
        """The answer of Stop hooks, and whether they keep the run going."""
        agent, about = self._conversation.context.agent, self._agent()
        event = "Stop" if agent.is_main else "SubagentStop"
        if not agent.is_main:
            about["agent_transcript_path"] = agent.transcript
        is_wanted = self._hooks is not None and self._hooks.wants(event)
        answer = await self._fire(
            event,
            left,
            stop_hook_active=self._blocks > 0,
            last_assistant_message=text,
            background_tasks=self._background_tasks() if is_wanted else [],
            session_crons=self._session_crons() if is_wanted else [],
            **about,
        )
        if answer is None or answer.block is None or answer.stop is not None:
            return answer, False
        self._blocks += 1
        if self._blocks > STOP_BLOCKS:
            self._on_news(HookNews(f"hooks kept the run from stopping {STOP_BLOCKS} times; now it stops", event=event))
        return answer, self._blocks <= STOP_BLOCKS

    async def allows_summary(self, trigger: str, instructions: str, left: float | None) -> bool:
        """Whether hooks let a summary take the history's place."""
        answer = await self._fire("PreCompact", left, trigger=trigger, custom_instructions=instructions)
        return answer is None or (answer.block is None and answer.stop is None)

    async def after_summary(
        self, messages: Iterable[Message], model: str, trigger: str
    ) -> "tuple[UserMessage | Attachment, ...]":
        """Tell hooks about a summary; returns what they add after it."""
        summary = [message_text(each) for each in messages if isinstance(each, Attachment) and each.kind == SUMMARY]
        await self._fire("PostCompact", trigger=trigger, compact_summary="\n".join(summary))
        return await self.session_start("compact", model)


def _call_fields(use: ToolUse) -> dict[str, Any]:
    return {"tool_name": use.name, "tool_input": use.input, "tool_use_id": use.id}


FAILURES = {401: "authentication_failed", 402: "billing_error", 403: "authentication_failed", 429: "rate_limit"}


def failure_kind(failure: StreamFailure) -> str:
    """The name under which programs know a failure of the model."""
    status = failure.status or 0
    return FAILURES.get(status) or (
        "server_error" if status >= 500 else "invalid_request" if 400 <= status < 500 else "unknown"
    )


def _is_unanswered(decision: Decision) -> bool:
    last = decision.opinions[-1].strength if decision.opinions else None
    return decision.verdict is Verdict.DENY and last is Strength.UNANSWERED


def message_text(message: UserMessage | Attachment) -> str:
    """The text of a message."""
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


def hook_attachments(answer: "HookResult | None") -> tuple[Attachment, ...]:
    """What a hook adds to the conversation."""
    return () if answer is None else tuple(map(hook_note, answer.context))


def hook_note(text: str) -> Attachment:
    """Text of a hook, as a note for the model."""
    return Attachment("hook", (Text(reminder(text)),))
