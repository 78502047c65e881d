"""
The conversation as it happens, from events: blocks that are committed, and the lines that still change.

The open end of the answer, one line for each running call, what is waited for. Nothing here writes to a terminal: it
is asked for its lines when a frame is drawn, so events cost little however many there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail.conversation.blocks import Text, Thinking, ToolUse
from handrail.conversation.plain import plain
from handrail.conversation.stream import BlockEnd, BlockStart, Delta, StreamRetry
from handrail.lazy import lazy
from handrail.loop.events import (
    SYNTHETIC,
    AnswerDiscarded,
    BlockComplete,
    Compacted,
    LoopEvent,
    MessageComplete,
    Notice,
    QueuedMessageTaken,
    RequestSent,
    RunEnded,
    RunStarted,
    Summarising,
)
from handrail.loop.state import Why
from handrail.tools.cards import Tone
from handrail.tools.delegation import AgentNews, AgentReport
from handrail.tools.events import CallFinished, CallProgress, CallQueued, CallStarted, group_card
from handrail.tools.outcome import Status
from handrail.tui.call_draft import CallDraft, DrawDraft
from handrail.tui.call_lines import duration, label
from handrail.tui.interactive.agent_tree import AgentTree
from handrail.tui.interactive.blocks import AnswerBlock, CallBlock, GroupBlock, NoteBlock, PromptBlock
from handrail.tui.interactive.frames import ScreenBlock
from handrail.tui.interactive.paint import Theme, paint
from handrail.tui.text import clip

if TYPE_CHECKING:
    from handrail.tui.interactive import markdown
else:
    markdown = lazy("handrail.tui.interactive.markdown")

SPINNER = "|/-\\"
MAX_CALL_LINES = 8
"""How many lines running calls and agents get."""
FOOTER_EVENTS = (MessageComplete, RunEnded)
"""After these, the footer tells something else."""
BAR = 10
"""Columns of a bar that shows how far a call is."""


@dataclass(slots=True)
class LiveCall:
    """A call that is not over."""

    queued: CallQueued
    label: str
    started: float | None = None
    interruptible: bool = False
    progress: CallProgress | None = None
    asks: bool = False
    """Whether a question about it is open."""


class ConversationView:
    """Turns events into blocks, which it hands to `commit`, and into the lines of the moment."""

    def __init__(
        self,
        commit: Callable[[ScreenBlock], None],
        clock: Callable[[], float],
        theme: Callable[[], Theme],
        draw_draft: DrawDraft | None = None,
    ) -> None:
        self._commit = commit
        self._clock = clock
        self._theme = theme
        self._draw_draft = draw_draft
        self.agents = AgentTree()
        """The sub-agents at work."""
        self._calls: dict[str, LiveCall] = {}
        self._held: list[tuple[LiveCall, CallFinished]] = []
        self._answer: markdown.OpenAnswer | None = None
        self._slots: dict[int, bool] = {}
        self._drafts: dict[int, CallDraft] = {}
        """The calls that the model is still writing, by their slots."""
        self._waiting: tuple[str, float] | None = None
        self._thought_since: float | None = None
        self._shown = ""

    # What is going on

    @property
    def is_busy(self) -> bool:
        """Whether anything moves on the screen by itself."""
        return bool(self._calls or self._waiting or self._answer or self.agents)

    @property
    def interruptible_calls(self) -> int:
        """How many of the running calls a new message would stop."""
        return sum(call.started is not None and call.interruptible for call in self._calls.values())

    def card_of(self, use_id: str) -> CallQueued | None:
        """The call of this id, if it is not over."""
        call = self._calls.get(use_id)
        return call.queued if call else None

    def mark_question(self, use_id: str, *, is_open: bool) -> None:
        """A question about a call was asked, or is over."""
        if call := self._calls.get(use_id):
            call.asks = is_open

    def say(self, text: str, tone: Tone = "plain", *, dim: bool = False) -> None:
        """Commit a note."""
        self._flush()
        self._commit(NoteBlock(text, self._theme(), tone, dim))

    def prompt(self, text: str) -> None:
        """Commit what the person sent."""
        self._flush()
        self._commit(PromptBlock(text, self._theme()))

    # Events

    def on_event(self, event: LoopEvent) -> None:
        """Take in one event."""
        match event:
            case Delta(slot, text):
                self._on_delta(slot, text)
            case CallQueued() | CallStarted() | CallProgress() | CallFinished():
                self._on_call(event)
            case BlockStart() | BlockEnd() | BlockComplete():
                self._on_block(event)
            case RunStarted():
                self._shown = ""
            case RequestSent():
                self._slots.clear()
                self._drafts.clear()
                self.wait_for("waiting for the model")
            case MessageComplete() | AnswerDiscarded():
                self._end_message()
            case RunEnded():
                self._end(event)
            case _:
                self._on_note(event)

    def _on_note(self, event: LoopEvent) -> None:
        match event:
            case StreamRetry():
                self._end_message()
                self.say(event.report, "warning")
            case Summarising(on):
                self.wait_for("shortening the conversation" if on else "")
            case Compacted(messages_before=before, messages_after=after, kind="full"):
                self.say(f"The conversation was summarised: {before} messages became {after}.", dim=True)
            case Notice(text):
                self.say(text, "warning")
            case QueuedMessageTaken(message):
                self.prompt("\n".join(block.text for block in message.content if isinstance(block, Text)))
            case _:
                pass

    def _on_delta(self, slot: int, text: str) -> None:
        if slot in self._slots:
            self._slots[slot] = True
            if self._answer is None:
                self._answer = markdown.OpenAnswer()
            self._answer.add(text)
        elif draft := self._drafts.get(slot):
            draft.add(text)

    def _on_block(self, event: BlockStart | BlockEnd | BlockComplete) -> None:
        match event:
            case BlockStart(slot=slot, kind="tool_use", name=name):
                self._drafts[slot] = CallDraft(name, self._draw_draft)
                self.wait_for("writing a call")
            case BlockStart(slot=slot, kind=kind):
                self.wait_for("thinking" if kind == "thinking" else "")
                if kind == "text":
                    self._slots[slot] = False
                self._thought_since = self._clock() if kind == "thinking" else self._thought_since
            case BlockEnd(slot, Text(text)):
                if not self._slots.pop(slot, False):
                    self._add_whole(text)
                self._end_answer()
            case BlockEnd(slot, ToolUse()):
                self._drafts.pop(slot, None)
            case BlockEnd(block=Thinking()):
                seconds = self._clock() - (self._thought_since or self._clock())
                self.say(f"thought for {duration(seconds)} (Ctrl+O shows it)", dim=True)
            case BlockComplete(model=model, block=Text(text)) if model == SYNTHETIC:
                self._add_whole(text.replace("\n", "  \n"))  # the lines of a command's answer stay lines
                self._end_answer()
            case _:
                pass

    def _add_whole(self, text: str) -> None:
        self._answer = self._answer or markdown.OpenAnswer()
        self._answer.add(text)

    def _end_message(self) -> None:
        self._end_answer()
        self._drafts.clear()
        self.wait_for("")

    def _end_answer(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            self._commit_pieces(answer.take_all())

    def _commit_pieces(self, pieces: Sequence["markdown.MarkdownPiece"]) -> None:
        if pieces:
            self._flush()
        for piece in pieces:
            self._shown = (self._shown + piece.source)[-100_000:]
            self._commit(AnswerBlock(piece.source, self._theme(), piece.joins))

    def _end(self, event: RunEnded) -> None:
        self._end_message()
        self._flush()
        self._calls.clear()
        self.agents.end_calls()
        if event.why in (Why.ABORTED_STREAMING, Why.ABORTED_TOOLS):
            self.say("interrupted", "warning")
        elif event.is_error:
            self.say(event.report, "bad")
        elif event.text.strip() and not self._shown.strip():  # it was not streamed
            self._add_whole(event.text)
            self._end_answer()

    def on_background_news(self, news: AgentNews) -> None:
        """Take in an event of a sub-agent in the background; its end is said."""
        self.agents.on_background_news(news, self._clock())
        if isinstance(report := news.event, AgentReport):
            took = f" after {duration(report.seconds)}" if report.seconds else ""
            why = f": {report.problem}" if report.problem else ""
            tone: Tone = "plain" if report.status == "completed" else "warning"
            self.say(f"The agent {news.kind} ({news.message}) {report.status}{took}{why}", tone, dim=True)

    # Calls

    def _on_call(self, event: CallQueued | CallStarted | CallProgress | CallFinished) -> None:
        match event:
            case CallQueued(use):
                if not self._drafts:
                    self.wait_for("")
                self._calls[use.id] = LiveCall(event, label(event.card))
            case CallStarted(use, at, interruptible=interruptible) if call := self._calls.get(use.id):
                call.started, call.interruptible = at, interruptible
            case CallProgress(use) if call := self._calls.get(use.id):
                if isinstance(event.progress, AgentNews):
                    self.agents.on_call_news(use.id, event.progress, self._clock())
                else:
                    call.progress = event
            case CallFinished(outcome) if call := self._calls.pop(outcome.use.id, None):
                self.agents.end_call(outcome.use.id)
                self._finish(call, event)
            case _:
                pass

    def _finish(self, call: LiveCall, event: CallFinished) -> None:
        name = call.queued.use.name
        if self._held and self._held[0][0].queued.use.name != name:
            self._flush()
        self._held.append((call, event))
        if not any(other.queued.use.name == name for other in self._calls.values()):
            self._flush()

    def _flush(self) -> None:
        """Commit the calls that waited for others of their kind."""
        held, self._held = self._held, []
        all_well = all(event.outcome.status is Status.OK for _, event in held)
        card = group_card([call.queued for call, _ in held]) if len(held) > 1 and all_well else None
        if card is not None:
            self._commit(GroupBlock(card, self._theme()))
            return
        for call, event in held:
            outcome = event.outcome
            reason = outcome.decision.reason if outcome.decision else ""
            block = CallBlock(call.label, event.card, outcome.status, reason, outcome.timings.ran, self._theme())
            self._commit(block)

    # The lines of the moment

    def wait_for(self, what: str) -> None:
        """Show what is waited for, and for how long; empty = nothing any more."""
        if not what:
            self._waiting = None
        elif self._waiting is None or self._waiting[0] != what:
            self._waiting = (what, self._clock())

    def settle(self) -> None:
        """Commit what of the answer will not change any more."""
        if self._answer is not None:
            self._commit_pieces(self._answer.take_finished())

    def live_lines(self, width: int, height: int) -> list[str]:
        """What is drawn below the committed blocks, in at most so many rows."""
        tail: list[str] = []
        if self._answer is not None and (rest := self._answer.rest).source.strip():
            tail = AnswerBlock(rest.source, self._theme(), rest.joins).lines(width)
        status = self._status_lines(width)
        room = max(height - len(status), 1)
        return [*tail[-room:], *status]

    def _status_lines(self, width: int) -> list[str]:
        theme, now = self._theme(), self._clock()
        mark = SPINNER[int(now * 8) % len(SPINNER)] if theme.has_colour else "-"
        lines: list[str] = []
        by_name: dict[str, list[LiveCall]] = {}
        for call in self._calls.values():
            by_name.setdefault(call.queued.use.name, []).append(call)
        for calls in by_name.values():
            group = group_card([call.queued for call in calls])
            if group is not None:
                running = sum(call.started is not None for call in calls)
                lines.append(f"{mark} {group.title} {group.detail}, {running} running")
            for call in calls:
                lines += [] if group is not None else [self._call_line(call, mark, now)]
                lines += self.agents.below(call.queued.use.id)
        lines += self.agents.background_lines(now)
        if len(lines) > MAX_CALL_LINES:
            hint = " (Ctrl+T)" if self.agents else ""
            lines = [*lines[: MAX_CALL_LINES - 1], f"  (+{len(lines) - MAX_CALL_LINES + 1} more{hint})"]
        if self._waiting is not None:
            what, since = self._waiting
            for draft in self._drafts.values():
                what = draft.line()
            lines.append(f"{mark} {clip(what, 60)}, {duration(now - since)} (Esc interrupts)")
        return [paint(clip(plain(line), width), theme.dim) for line in lines]

    def _call_line(self, call: LiveCall, mark: str, now: float) -> str:
        if call.asks:
            return f"? {call.label}, waits for your answer"
        if call.started is None:
            return f". {call.label}, waits for an earlier call"
        parts = [clip(call.label, 60), duration(now - call.started), _progress(call.progress)]
        return f"{mark} {', '.join(filter(None, parts))}"


def _progress(event: CallProgress | None) -> str:
    """What a call says of its progress, in a line: a bar if it knows how far it is, and its words."""
    if event is None:
        return ""
    share = event.progress.fraction
    bar = "" if share is None else progress_bar(share)
    return " ".join(filter(None, (bar, " ".join(event.card.detail.split()))))


def progress_bar(share: float) -> str:
    """A bar for a share between 0 and 1; any other number, which a program may report too, is taken to its end."""
    full = round(min(max(share, 0.0), 1.0) * BAR) if share == share else 0  # noqa: PLR0124  # not a number
    return f"[{'=' * full}{' ' * (BAR - full)}]"
