"""
Where hooks step into a run: at its prompt, before it stops, after a batch of calls, around a summary.

Every moment is passed at no cost when there are no hooks for it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, Message, UserMessage
from handrail.hooks.news import HookNews
from handrail.hooks.texts import reminder
from handrail.loop.dialogue import Dialogue
from handrail.loop.heeding import heeding
from handrail.loop.setup import RunHooks
from handrail.loop.summary import SUMMARY
from handrail.tools.abort import AbortSignal
from handrail.tools.outcome import Outcome

if TYPE_CHECKING:
    from handrail.hooks.answers import Answer

STOP_BLOCKS = 8
"""How often in a row hooks may keep a run from stopping."""


class Moments:
    """The moments of one run. Answers are None when nobody was asked, or the run was interrupted meanwhile."""

    def __init__(
        self, hooks: RunHooks | None, dialogue: Dialogue, signal: AbortSignal, tell: Callable[[HookNews], None]
    ) -> None:
        self._hooks = hooks
        self._dialogue = dialogue
        self._signal = signal
        self._tell = tell
        self._blocks = 0

    async def fire(self, event: str, left: float | None = None, **fields: Any) -> "Answer | None":
        """Ask the hooks of an event, for at most `left` seconds."""
        if self._hooks is None or not self._hooks.wants(event):
            return None
        asking = self._hooks.fire(event, fields, self._dialogue.context, tell=self._tell)
        return await heeding(asking, self._signal, left)

    async def session_starts(self, source: str, model: str) -> tuple[Attachment, ...]:
        """What hooks want the model to know at the start, or after the history was replaced by a summary."""
        return added(await self.fire("SessionStart", source=source, model=model))

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
        answer = await self.fire(
            event,
            left,
            stop_hook_active=self._blocks > 0,
            last_assistant_message=text,
            background_tasks=[],
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

    async def summarised(self, messages: Iterable[Message], model: str, trigger: str) -> tuple[Attachment, ...]:
        """Tell hooks of a summary; what the model should know again after it."""
        summary = [words(each) for each in messages if isinstance(each, Attachment) and each.kind == SUMMARY]
        await self.fire("PostCompact", trigger=trigger, compact_summary="\n".join(summary))
        return await self.session_starts("compact", model)


def words(message: UserMessage | Attachment) -> str:
    """The text of a message."""
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


def added(answer: "Answer | None") -> tuple[Attachment, ...]:
    """What an answer adds to the conversation."""
    return () if answer is None else tuple(map(hook_note, answer.context))


def hook_note(text: str) -> Attachment:
    """Words of a hook for the model."""
    return Attachment("hook", (Text(reminder(text)),))
