"""The whole conversation as text: every input, output, decision and time, for the transcript view."""

import json
from collections import deque
from collections.abc import Callable

from handrail.conversation.blocks import Text, Thinking
from handrail.conversation.plain import plain
from handrail.loop.events import BlockComplete, LoopEvent, Notice, QueuedMessageTaken, RunEnded, RunStarted
from handrail.tools.call_report import call_report
from handrail.tools.events import CallFinished
from handrail.tui.call_lines import duration

MAX_ENTRIES, MAX_ENTRY = 1_000, 20_000


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
                given = json.dumps(outcome.use.input, ensure_ascii=False, indent=2, default=repr)
                lines = [f"input: {given}", *call_report(outcome)[1:]]
                self._add(f"{outcome.use.name}: {outcome.status.value}", "\n".join([*lines, "", outcome.result.text]))
            case Notice(text):
                self._add("note", text)
            case RunEnded():
                problem = f"\n{event.report}" if event.is_error else ""
                self._add("end", f"{event.why.value}, {event.turns} turns, {duration(event.seconds)}{problem}")
            case _:
                pass

    def _add(self, who: str, text: str) -> None:
        more = f"\n(+{len(text) - MAX_ENTRY:,} more characters)" if len(text) > MAX_ENTRY else ""
        self._entries.append(f"--- {self._now()} {plain(who)}\n{plain(text[:MAX_ENTRY])}{more}")

    @property
    def text(self) -> str:
        """All of it."""
        return "\n\n".join(self._entries) or "Nothing was said yet."
