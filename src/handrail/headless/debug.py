"""Prints what `--debug` and `--verbose` show, to standard error or a file: requests, cache prefix, calls, costs."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TextIO

from handrail.conversation.plain import plain
from handrail.conversation.redact import Redactor
from handrail.errors import HandrailError
from handrail.loop.events import (
    Compacted,
    LoopEvent,
    MessageComplete,
    Notice,
    RequestSent,
    ResultsComplete,
    RunEnded,
)
from handrail.tools.call_report import call_report
from handrail.tools.cards import Card, Tone
from handrail.tools.events import CallFinished, CallProgress, CallQueued, CallStarted, group_card

BODY_LINES = 5
"""How many lines of a card are shown."""
SIGNS: dict[Tone, str] = {"plain": " ", "good": "+", "warning": "?", "bad": "!"}


class DebugPrinter:
    """
    Prints one line per event worth knowing.

    With `everything`, also about requests and whether their prefix changed; with `notices`, what else a person should
    know. `clean` takes out what must not be written.
    """

    def __init__(
        self, out: TextIO, *, everything: bool, notices: bool = True, clean: Callable[[str], str] = str
    ) -> None:
        self._out = out
        self._clean = clean
        self._everything = everything
        self._notices = notices
        self._prefix = ""
        self._queued: list[CallQueued] = []
        self._progress: dict[str, str] = {}

    def on_event(self, event: LoopEvent) -> None:
        for line in self._lines(event):
            self._out.write(f"handrail: {plain(self._clean(line))}\n")
        self._out.flush()

    def _lines(self, event: LoopEvent) -> list[str]:
        match event:
            case CallQueued():
                self._queued.append(event)
                return []
            case CallStarted(use):
                waits = "" if event.interruptible else ", and runs to its end if a new message comes"
                return [f"{use.name} started ({use.id}){waits}", *_inside(event.card)]
            case CallProgress(use):
                card, before = event.card, self._progress.get(use.id)
                self._progress[use.id] = card.line
                return [] if card.line == before else [f"{use.name} goes on ({use.id})", *_inside(card)]
            case CallFinished(outcome):
                self._progress.pop(outcome.use.id, None)
                took = f"{outcome.timings.ran * 1000:.1f} ms"
                ended = f"{outcome.use.name} {outcome.status.value} after {took} ({outcome.use.id})"
                return [ended, *_inside(event.card), *(f"  {line}" for line in call_report(outcome))]
            case ResultsComplete():
                queued, self._queued = self._queued, []
                return [card.line for card in _groups(queued)]
            case _:
                line = self._line(event)
                return [line] if line else []

    def _line(self, event: LoopEvent) -> str:
        match event:
            case RequestSent() if self._everything:
                return self._request(event)
            case MessageComplete(usage=usage) if self._everything:
                return (
                    f"answer {event.turn}: {usage.fresh_input} tokens in, {usage.whole_output} out, "
                    f"{usage.cache_read_tokens or 0} from the cache"
                )
            case Compacted():
                return f"the history was shortened ({event.kind}): {event.note}"
            case Notice() if self._notices:
                return event.text
            case RunEnded():
                cost = "unknown" if event.dollars is None else f"{event.dollars:.4f} USD"
                turns = f"{event.turns} turn{'s' * (event.turns != 1)}"
                return f"ended: {event.why.value} after {turns} and {event.seconds:.2f} s, cost {cost}"
            case _:
                return ""

    def _request(self, event: RequestSent) -> str:
        prefix, before = event.prefix[:12], self._prefix
        self._prefix = prefix
        state = "is new" if not before else "is unchanged" if prefix == before else f"CHANGED from {before}"
        return (
            f"request {event.turn}.{event.attempt} to {event.request.model}: {event.messages} messages, "
            f"{len(event.request.tools)} tools, prefix {prefix} {state}, chain {event.chain.id[:8]}/{event.chain.depth}"
        )


def _inside(card: Card) -> list[str]:
    """The lines of a card, the first one with the sign of its tone."""
    first, *rest = card.lines(BODY_LINES)
    return [f"{SIGNS[card.tone]} {first}", *(f"  {line}" for line in rest)]


def _groups(queued: Sequence[CallQueued]) -> Iterator[Card]:
    """Cards for calls of an answer that are shown as one group."""
    for name in dict.fromkeys(event.use.name for event in queued):
        card = group_card([event for event in queued if event.use.name == name])
        if card is not None:
            yield card


def file_printer(file: TextIO, redactor: Redactor) -> DebugPrinter:
    """A printer of all events for the file of --debug-file, which leaves out known secrets."""
    return DebugPrinter(file, everything=True, clean=redactor.text)


def open_debug_file(name: str | None) -> AbstractContextManager[TextIO | None]:
    """A private file to add lines to, None without a name; raises HandrailError if it cannot be written."""
    if name is None:
        return nullcontext()
    try:
        return open(name, "a", encoding="utf-8", errors="replace", opener=_owner_only)
    except OSError as error:
        raise HandrailError(
            f"--debug-file: {name!r} cannot be written: {error.strerror}. Choose another file."
        ) from error


def _owner_only(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)  # the file may have existed with other rights
    return descriptor
