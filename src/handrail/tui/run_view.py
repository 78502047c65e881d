"""A run as it happens: the answer as it comes, a line for each call, and a status line for what takes long."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.plain import plain
from handrail.conversation.stream import (
    BlockEnd,
    BlockStart,
    Delta,
    MessageEnd,
    StreamFailure,
    StreamRetry,
)
from handrail.loop.events import AnswerDiscarded, LoopEvent, MessageComplete, RequestSent, RunEnded, Summarising
from handrail.tools.cards import Tone
from handrail.tools.delegation import AgentNews
from handrail.tools.events import CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import Outcome
from handrail.tui.call_draft import CallDraft, DrawDraft
from handrail.tui.call_lines import TONES, duration, finished_lines, label, running_line
from handrail.tui.screen import Screen
from handrail.tui.text import clip, wrap

FIRST_STATUS, NEXT_STATUS = 0.3, 1.0
"""Seconds until something slow gets a status line, and between its updates."""

Details = Callable[[Outcome], Sequence[str]]


@dataclass(slots=True)
class ShownCall:
    """A call that is not over."""

    label: str
    started: float | None = None
    progress: str = ""


class RunView:
    """Draws the events of runs on a screen. `details` gives more lines about each finished call."""

    def __init__(self, screen: Screen, *, shows_calls: bool = True, details: Details | None = None) -> None:
        self._screen = screen
        self._shows_calls = shows_calls
        self._details = details
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._calls: dict[str, ShownCall] = {}
        self._waiting: tuple[str, float] | None = None
        self.draw_draft: DrawDraft | None = None
        """Draws calls that the model is still writing, once the tools are known."""
        self._drafts: dict[int, CallDraft] = {}
        self._text_slots: dict[int, bool] = {}
        """The blocks of text that are open, each with whether anything of it was shown."""
        self._pending_return = ""
        self._answer: list[str] = []
        self._held_lines: list[tuple[str, Tone]] = []

    def on_event(self, event: LoopEvent) -> None:
        """Draw one event."""
        match event:
            case CallQueued() | CallStarted() | CallProgress() | CallFinished():
                self._on_call(event)
            case BlockStart() | Delta() | BlockEnd():
                self._on_block(event)
            case RequestSent():
                self._wait_for("waiting for the model")
                self._text_slots.clear()
                self._drafts.clear()
            case MessageEnd() | MessageComplete() | StreamFailure() | StreamRetry() | AnswerDiscarded():
                self._end_text()
                self._drafts.clear()
                self._wait_for("")
            case Summarising(on):
                self._wait_for("shortening the conversation" if on else "")
            case RunEnded():
                self._end(event)
            case _:
                pass

    def close(self) -> None:
        """The run is over, however it ended: nothing is redrawn any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._calls.clear()
        self._waiting = None
        self._screen.status("")
        self._screen.end_answer_line()

    # The answer

    def _on_block(self, event: BlockStart | Delta | BlockEnd) -> None:
        match event:
            case BlockStart(slot=slot, kind="tool_use", name=name):
                self._drafts[slot] = CallDraft(name, self.draw_draft)
                self._wait_for("writing a call")
            case BlockStart(slot=slot, kind=kind):
                self._wait_for("the model thinks" if kind == "thinking" else "")
                if kind == "text":
                    self._text_slots[slot] = False
            case Delta(slot, text) if slot in self._text_slots:
                self._text_slots[slot] = True
                self._write_answer(text)
            case Delta(slot, text) if slot in self._drafts:
                self._drafts[slot].add(text)
            case BlockEnd(slot, ToolUse()):
                self._drafts.pop(slot, None)
            case BlockEnd(slot, Text(text)):
                if not self._text_slots.pop(slot, False):
                    self._write_answer(text)
                self._end_text()
            case _:
                pass

    def _write_answer(self, text: str) -> None:
        self._answer.append(text)
        text = self._pending_return + text
        self._pending_return = "\r" if text.endswith("\r") else ""  # the other half of a line end may follow
        self._screen.answer(text.removesuffix("\r"))

    def _end_text(self) -> None:
        self._screen.answer(self._pending_return)
        self._pending_return = ""
        self._screen.end_answer_line()
        held, self._held_lines = self._held_lines, []
        for line, tone in held:
            self._screen.line(line, tone)

    def _end(self, event: RunEnded) -> None:
        self._end_text()
        self.close()
        if event.text not in "".join(self._answer):  # it was not streamed: a command gave it
            self._screen.answer(event.text)
            self._screen.end_answer_line()

    # Calls

    def _on_call(self, event: CallQueued | CallStarted | CallProgress | CallFinished) -> None:
        use = event.outcome.use if isinstance(event, CallFinished) else event.use
        call = self._calls.setdefault(use.id, ShownCall(use.name))
        match event:
            case CallQueued():
                call.label = label(event.card)
            case CallStarted(at=at):
                call.started = at
                self._start_timer()
            case CallProgress():
                call.progress = _progress(event) or call.progress
            case CallFinished():
                del self._calls[use.id]
                self._finish(call, event)

    def _finish(self, call: ShownCall, event: CallFinished) -> None:
        width, outcome = self._screen.width, event.outcome
        lines = finished_lines(f"- {call.label}", outcome, event.card, width)
        toned = len(lines)
        for detail in self._details(outcome) if self._details else ():
            lines += wrap(plain(f"    {detail}"), width, "      ")
        tone = TONES.get(outcome.status, "plain")
        if not self._shows_calls:
            return
        if self._screen.has_status:
            self._screen.status(self._status())
        shown = [(plain(line), tone if at < toned else "plain") for at, line in enumerate(lines)]
        if self._screen.is_mid_answer:  # a paragraph is not torn apart
            self._held_lines += shown
            return
        for line, its_tone in shown:
            self._screen.line(line, its_tone)

    # The status line

    def _wait_for(self, what: str) -> None:
        self._waiting = (what, self._loop.time()) if what else None
        if what:
            self._start_timer()
        else:
            self._screen.status("")

    def _start_timer(self) -> None:
        if self._timer is None and self._shows_calls:
            self._timer = self._loop.call_later(FIRST_STATUS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        status = self._status()
        self._screen.status(status)
        if status or self._calls or self._waiting:
            self._timer = self._loop.call_later(NEXT_STATUS, self._tick)

    def _status(self) -> str:
        now = self._loop.time()
        running = sorted(
            (call for call in self._calls.values() if call.started is not None), key=lambda call: call.started or 0.0
        )
        if running:
            first = running[0]
            seconds = now - (first.started or now)
            return running_line(f"> {first.label}", seconds, first.progress, len(running) - 1, self._screen.width)
        if self._waiting is not None:
            what, since = self._waiting
            for draft in self._drafts.values():
                what = f"the model is {draft.line()}"
            return f"> {clip(plain(what), self._screen.width // 2)}, {duration(now - since)}"
        return ""


def _progress(event: CallProgress) -> str:
    """What a call says of its progress, in a line; of a sub-agent the call that it makes."""
    match event.progress:
        case AgentNews(event=CallQueued() as inner):
            return label(inner.card)
        case AgentNews():
            return ""
        case progress:
            return progress.message.strip().rpartition("\n")[2]
