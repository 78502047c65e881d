"""The whole conversation as text: every input, output, decision and time, for the transcript view."""

import json
from collections import deque
from collections.abc import Callable, Iterable

from handrail.conversation.blocks import Text, Thinking, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Message, UserMessage
from handrail.conversation.plain import plain
from handrail.loop.events import BlockComplete, LoopEvent, Notice, QueuedMessageTaken, RunEnded, RunStarted
from handrail.tools.call_report import call_report
from handrail.tools.events import CallFinished
from handrail.tui.call_lines import duration

MAX_ENTRIES, MAX_ENTRY = 1_000, 20_000
EARLIER = "earlier"


class TranscriptText:
    """Remembers what happened, as far as a person may want to look it up."""

    def __init__(self, now: Callable[[], str]) -> None:
        self._now = now
        self._entries: deque[str] = deque(maxlen=MAX_ENTRIES)

    def on_event(self, event: LoopEvent) -> None:
        """Take in one event."""
        match event:
            case RunStarted(prompt=message) | QueuedMessageTaken(message):
                text = "\n".join(block.text for block in message.content if isinstance(block, Text))
                self._add("you", text)
            case BlockComplete(model=model, block=Text(text)):
                self._add(model, text)
            case BlockComplete(model=model, block=Thinking(text)):
                self._add(f"{model}, thinking", text)
            case CallFinished(outcome):
                lines = [f"input: {_as_json(outcome.use.input)}", *call_report(outcome)[1:]]
                self._add(f"{outcome.use.name}: {outcome.status.value}", "\n".join([*lines, "", outcome.result.text]))
            case Notice(text):
                self._add("note", text)
            case RunEnded():
                problem = f"\n{event.report}" if event.is_error else ""
                self._add("end", f"{event.why.value}, {event.turns} turns, {duration(event.seconds)}{problem}")
            case _:
                pass

    def add_history(self, messages: Iterable[Message]) -> None:
        """Take in the messages of a conversation that is resumed; their times are not known here."""
        for message in messages:
            if isinstance(message, UserMessage | AssistantMessage):
                who = "you" if isinstance(message, UserMessage) else message.model or "model"
                for block in message.content:
                    self._add_earlier(block, who)

    def _add_earlier(self, block: object, who: str) -> None:
        match block:
            case ToolResult():
                self._add(f"result{': error' if block.is_error else ''}", block.text, EARLIER)
            case ToolUse(name=name, input=values):
                self._add(name, f"input: {_as_json(values)}", EARLIER)
            case Thinking(text):
                self._add(f"{who}, thinking", text, EARLIER)
            case Text(text):
                self._add(who, text, EARLIER)
            case _:
                pass

    def _add(self, who: str, text: str, when: str = "") -> None:
        more = f"\n(+{len(text) - MAX_ENTRY:,} more characters)" if len(text) > MAX_ENTRY else ""
        self._entries.append(f"--- {when or self._now()} {plain(who)}\n{plain(text[:MAX_ENTRY])}{more}")

    @property
    def text(self) -> str:
        """All of it."""
        return "\n\n".join(self._entries) or "Nothing was said yet."


def _as_json(values: object) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2, default=repr)
