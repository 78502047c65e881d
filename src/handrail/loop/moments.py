"""
Where hooks step into a run: at its prompt, before it stops, after a batch of calls, around a summary.

Every moment is passed at no cost when there are no hooks for it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, Message, UserMessage
from handrail.conversation.stream import StreamFailure
from handrail.hooks.news import HookNews
from handrail.hooks.texts import reminder
from handrail.loop.dialogue import Dialogue
from handrail.loop.heeding import heeding
from handrail.loop.setup import Setup
from handrail.loop.summary import SUMMARY
from handrail.records import record
from handrail.tools.abort import AbortSignal
from handrail.tools.access import DeclaredUse
from handrail.tools.outcome import Outcome
from handrail.tools.permission import Decision, Verdict

if TYPE_CHECKING:
    from handrail.hooks.answers import Answer

STOP_BLOCKS = 8
"""How often in a row hooks may keep a run from stopping."""


@record
class Expansion:
    """A command that the user typed, which stands for a longer prompt."""

    name: str
    words: str
    source: str
    typed: str


class Moments:
    """The moments of one run. Answers are None when nobody was asked, or the run was interrupted meanwhile."""

    def __init__(self, setup: Setup, dialogue: Dialogue, signal: AbortSignal, tell: Callable[[HookNews], None]) -> None:
        self._hooks = setup.hooks
        self._tasks = setup.tasks
        self._dialogue = dialogue
        self._signal = signal
        self._tell = tell
        self._blocks = 0

    async def fire(
        self, event: str, left: float | None = None, *, use: DeclaredUse | None = None, **fields: Any
    ) -> "Answer | None":
        """Ask the hooks of an event, for at most `left` seconds."""
        if self._hooks is None or not self._hooks.wants(event):
            return None
        asking = self._hooks.fire(event, fields, self._dialogue.context, use=use, tell=self._tell)
        return await heeding(asking, self._signal, left)

    async def session_starts(self, source: str, model: str) -> tuple[UserMessage | Attachment, ...]:
        """What hooks want the model to know at the start, and to be asked first."""
        answer = await self.fire("SessionStart", source=source, model=model)
        first = (UserMessage((Text(answer.first),)),) if answer is not None and answer.first else ()
        return (*added(answer), *first)

    async def subagent_starts(self) -> tuple[Attachment, ...]:
        """What hooks want a sub-agent to know at its start."""
        return added(await self.fire("SubagentStart", **self._who()))

    def _who(self) -> dict[str, Any]:
        agent = self._dialogue.context.agent
        return {} if agent.is_main else {"agent_id": agent.id, "agent_type": agent.type}

    def _what_it_said(self) -> dict[str, Any]:
        agent = self._dialogue.context.agent
        return {} if agent.is_main else {"agent_transcript_path": agent.transcript}

    async def prompt(self, message: UserMessage) -> "Answer | None":
        """What hooks think of the user's words."""
        return await self.fire("UserPromptSubmit", prompt=words(message))

    async def expansion(self, command: Expansion | None) -> "Answer | None":
        """What hooks think of a command that stands for the prompt."""
        if command is None:
            return None
        return await self.fire(
            "UserPromptExpansion",
            expansion_type="slash_command",
            command_name=command.name,
            command_args=command.words,
            command_source=command.source,
            prompt=command.typed,
        )

    async def refused(self, outcomes: Iterable[Outcome], left: float | None) -> tuple[Attachment, ...]:
        """Tell hooks of calls that nobody but an automatic check could have allowed, and that it did not."""
        if self._hooks is None or not self._hooks.wants("PermissionDenied"):
            return ()
        said: list[Attachment] = []
        for outcome in outcomes:
            if outcome.decision is not None and _unanswered(outcome.decision):
                use = outcome.use
                about = {"tool_name": use.name, "tool_input": use.input, "tool_use_id": use.id}
                declared = DeclaredUse(use, outcome.access)
                fired = self.fire("PermissionDenied", left, use=declared, reason=outcome.decision.reason, **about)
                said += added(await fired)
        return tuple(said)

    async def failed(self, failure: StreamFailure, text: str) -> None:
        """Tell hooks that the model could not be asked."""
        kind, details = failure_kind(failure), failure.message
        await self.fire("StopFailure", error=kind, error_details=details, last_assistant_message=text)

    async def moved(self, before: str, left: float | None) -> None:
        """Tell hooks of another working folder."""
        now = str(self._dialogue.context.cwd)
        if now != before:
            await self.fire("CwdChanged", left, old_cwd=before, new_cwd=now)

    async def batch(self, outcomes: Iterable[Outcome], left: float | None) -> "Answer | None":
        """What hooks think of the calls of one answer, once all have ended."""
        if self._hooks is None or not self._hooks.wants("PostToolBatch"):
            return None
        calls = [
            {
                "tool_name": o.use.name,
                "tool_input": o.use.input,
                "tool_use_id": o.use.id,
                "tool_response": o.result.text,
            }
            for o in outcomes
        ]
        return await self.fire("PostToolBatch", left, tool_calls=calls)

    async def stopping(self, text: str, left: float | None) -> "tuple[Answer | None, bool]":
        """What hooks think of stopping here, and whether they keep the run from it."""
        who = self._who()
        event = "SubagentStop" if who else "Stop"
        wanted = self._hooks is not None and self._hooks.wants(event)
        answer = await self.fire(
            event,
            left,
            stop_hook_active=self._blocks > 0,
            last_assistant_message=text,
            background_tasks=self._tasks() if wanted else [],
            session_crons=[],
            **who,
            **self._what_it_said(),
        )
        if answer is None or answer.block is None or answer.stop is not None:
            return answer, False
        self._blocks += 1
        if self._blocks > STOP_BLOCKS:
            self._tell(HookNews(f"hooks kept the run from stopping {STOP_BLOCKS} times; now it stops", event=event))
        return answer, self._blocks <= STOP_BLOCKS

    async def may_summarise(self, trigger: str, wishes: str) -> bool:
        """Whether hooks let a summary take the history's place."""
        answer = await self.fire("PreCompact", trigger=trigger, custom_instructions=wishes)
        return answer is None or (answer.block is None and answer.stop is None)

    async def summarised(
        self, messages: Iterable[Message], model: str, trigger: str
    ) -> "tuple[UserMessage | Attachment, ...]":
        """Tell hooks of a summary; what the model should know again after it."""
        summary = [words(each) for each in messages if isinstance(each, Attachment) and each.kind == SUMMARY]
        await self.fire("PostCompact", trigger=trigger, compact_summary="\n".join(summary))
        return await self.session_starts("compact", model)


FAILURES = {401: "authentication_failed", 402: "billing_error", 403: "authentication_failed", 429: "rate_limit"}


def failure_kind(failure: StreamFailure) -> str:
    """A failure of the model under one of the few names that programs know."""
    status = failure.status or 0
    return FAILURES.get(status) or (
        "server_error" if status >= 500 else "invalid_request" if 400 <= status < 500 else "unknown"
    )


def _unanswered(decision: Decision) -> bool:
    last = decision.opinions[-1].layer if decision.opinions else ""
    return decision.verdict is Verdict.DENY and last == "nobody"


def words(message: UserMessage | Attachment) -> str:
    """The text of a message."""
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


def added(answer: "Answer | None") -> tuple[Attachment, ...]:
    """What an answer adds to the conversation."""
    return () if answer is None else tuple(map(hook_note, answer.context))


def hook_note(text: str) -> Attachment:
    """Words of a hook for the model."""
    return Attachment("hook", (Text(reminder(text)),))
