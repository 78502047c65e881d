"""What the demo shows: text and calls as they come, and afterwards the timeline and decisions of the whole run."""

import asyncio
import textwrap
from collections.abc import Callable

from handrail.conversation.blocks import Text
from handrail.conversation.plain import plain
from handrail.conversation.stream import MessageEnd
from handrail.loop.events import BlockComplete, LoopEvent, RequestSent, RunEnded
from handrail.tools.call_report import opinion_text
from handrail.tools.cards import Card
from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import Outcome, Status
from handrail.tui.call_lines import gist, label
from handrail.tui.text import clip
from handrail.tui.timeline import Row, Span, Talk, draw, spans

Say = Callable[[str], None]


class DemoView:
    """Prints what happens, in lines of at most `width` columns, and remembers it."""

    def __init__(self, say: Say, width: int) -> None:
        self._now = asyncio.get_running_loop().time
        self._say = say
        self._width = width
        self._turns: list[tuple[Talk, list[CallEvent]]] = []
        self._labels: dict[str, str] = {}
        self._outcomes: dict[str, Outcome] = {}
        self.ended: RunEnded | None = None

    def on_event(self, event: LoopEvent) -> None:
        """One event of the run."""
        match event:
            case RequestSent():
                self._turns.append((Talk(self._now()), []))
            case MessageEnd():
                self._turns[-1][0].ended = self._now()
            case BlockComplete(block=Text(text)):
                self._say(wrap_text(f"Model: {text}", self._width, "       "))
            case CallQueued(use):
                self._labels[use.id] = label(event.card)
                self._turns[-1][1].append(event)
            case CallStarted() | CallProgress():
                self._turns[-1][1].append(event)
            case CallFinished(outcome):
                self._turns[-1][1].append(event)
                self._outcomes[outcome.use.id] = outcome
                self._say(self._finish_call(outcome, event.card))
            case RunEnded():
                self.ended = event
            case _:
                pass

    def _finish_call(self, outcome: Outcome, card: Card) -> str:
        called = self._labels[outcome.use.id]
        if outcome.status is Status.DENIED and outcome.decision:
            why = max(outcome.decision.opinions, key=lambda each: each.strength)
            return wrap_text(f"  {called}: {card.detail} by the {opinion_text(why)}", self._width, "    ")
        return clip(f"  {called}: {gist(card)}", self._width)

    def timeline(self) -> str:
        """The calls against the stream, answer by answer."""
        rows: list[Row] = []
        for talk, events in self._turns:
            calls: list[Span] = spans(events, self._labels)
            rows += [talk, *calls]
        return draw(rows, self._width)

    def trace(self) -> str:
        """The decision on every call, in call order, with each opinion and where its rule is written."""
        lines: list[str] = []
        for outcome in (self._outcomes[each] for each in self._labels if each in self._outcomes):
            if outcome.decision is None:
                continue
            verdict = "refused" if outcome.status is Status.DENIED else "allowed"
            lines.append(clip(f"{verdict}  {self._labels[outcome.use.id]}", self._width))
            lines += [
                wrap_text(f"         {opinion_text(each)}", self._width, " " * 11) for each in outcome.decision.opinions
            ]
        return "\n".join(lines)


def wrap_text(text: str, width: int, indent: str) -> str:
    """The text in lines that fit; all but the first begin with the indent."""
    return textwrap.fill(plain(text), max(width, 40), subsequent_indent=indent, break_on_hyphens=False)
