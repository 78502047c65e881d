"""
The timeline of a run: when the model talked, and when each call was asked for, waited and ran.

    model        ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
    Read(a.py)     ····████
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted

RUNNING, WAITING, STREAMING = "█", "·", "▒"
LEGEND = f"{STREAMING} the model talks   {WAITING} waits   {RUNNING} runs"
LABEL_MAX, COLUMNS_MIN = 34, 20
NOTE = 23  # columns of the note behind a bar, with the gaps before and after the bar
HEARD_LATE = 0.005  # seconds: the event of an answer's end comes a moment after the end itself


@dataclass(slots=True)
class Talk:
    """A row for an answer of the model, from its request to its last byte, in seconds of the run."""

    began: float
    ended: float | None = None


@dataclass(slots=True)
class Span:
    """A row for a call, in seconds of the run."""

    label: str
    queued: float
    started: float | None = None
    ended: float | None = None
    status: str = ""


Row = Talk | Span


def spans(events: Iterable[CallEvent], labels: dict[str, str]) -> list[Span]:
    """The rows for these events, in call order. `labels` are by call id."""
    rows: dict[str, Span] = {}
    for event in events:
        match event:
            case CallQueued(use, at):
                rows[use.id] = Span(labels.get(use.id, use.name), at)
            case CallStarted(use, at):
                rows[use.id].started = at
            case CallFinished(outcome, at):
                row = rows[outcome.use.id]
                row.ended, row.status = at, outcome.status.value
            case CallProgress():
                pass
    return list(rows.values())


def draw(rows: Sequence[Row], width: int) -> str:
    """The rows as text of the given width, with a scale below. A call is early if it began before its answer ended."""
    begin = min(_beginning(row) for row in rows)
    end = max(_end(row) for row in rows)
    longest = max((len(row.label) for row in rows if isinstance(row, Span)), default=0)
    label = max(min(longest, LABEL_MAX, width - NOTE - COLUMNS_MIN), len("model"))
    columns = max(width - label - NOTE, COLUMNS_MIN)
    scale = columns / max(end - begin, 1e-9)

    def bar(*parts: tuple[str, float, float]) -> str:
        cells = [" "] * columns
        for mark, start, stop in parts:
            first = min(int((start - begin) * scale), columns - 1)
            last = min(max(int((stop - begin) * scale), first + 1), columns)
            cells[first:last] = mark * (last - first)
        return "".join(cells)

    lines: list[str] = []
    talk = Talk(begin, begin)
    for row in rows:
        match row:
            case Talk(began):
                talk = row
                stop = _end(row)
                lines.append(f"{'model'.ljust(label)}  {bar((STREAMING, began, stop))}  {_ms(stop - began)} streaming")
            case Span():
                started = _start(row)
                parts = [(WAITING, row.queued, started)] if started - row.queued > 1 / scale else []
                text = row.label if len(row.label) <= label else row.label[: label - 3] + "..."
                drawn = bar(*parts, (RUNNING, started, end if row.ended is None else row.ended))
                lines.append(f"{text.ljust(label)}  {drawn}  {_note(row, started, _end(talk))}")
    lines.append(f"{''.ljust(label)}  0{f'{(end - begin) * 1000:.0f} ms'.rjust(columns - 1)}")
    lines.append(f"{''.ljust(label)}  {LEGEND}")
    return "\n".join(lines)


def _beginning(row: Row) -> float:
    return row.began if isinstance(row, Talk) else row.queued


def _end(row: Row) -> float:
    return _beginning(row) if row.ended is None else row.ended


def _start(row: Span) -> float:
    return next(at for at in (row.started, row.ended, row.queued) if at is not None)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:6.0f} ms"


def _note(row: Span, started: float, talk_end: float) -> str:
    """How long the call took, and whether it was early, failed or was denied."""
    took = _ms(0 if row.ended is None else row.ended - started)
    if row.status != "ok":
        return f"{took} {row.status}"
    return f"{took} early" if started < talk_end - HEARD_LATE else took
