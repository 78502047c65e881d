"""
The timeline: when each call of an answer was asked for, began and ended, against the model's stream.

    model        ################========
    Read(a.py)     ....####
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted

RUNNING, WAITING, STREAMING = "█", "·", "▒"
LABEL_MAX = 34


@dataclass(slots=True)
class Span:
    """One row: seconds on the run's clock."""

    label: str
    queued: float
    started: float | None = None
    ended: float | None = None
    status: str = ""


def spans(events: Iterable[CallEvent], labels: dict[str, str]) -> list[Span]:
    """The rows that the events tell of, in the order of the calls. `labels` are by call id."""
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


def draw(rows: Sequence[Span], stream: tuple[float, float], width: int) -> str:
    """The rows as text of the given width, the model's stream on top, a scale below."""
    begin = min([stream[0], *(row.queued for row in rows)])
    end = max([stream[1], *(row.queued if row.ended is None else row.ended for row in rows)])
    label = min(max((len(row.label) for row in rows), default=5), LABEL_MAX)
    columns = max(width - label - 20, 20)
    scale = columns / max(end - begin, 1e-9)

    def bar(*parts: tuple[str, float, float]) -> str:
        cells = [" "] * columns
        for mark, start, stop in parts:
            first = min(int((start - begin) * scale), columns - 1)
            last = min(max(int((stop - begin) * scale), first + 1), columns)
            cells[first:last] = mark * (last - first)
        return "".join(cells)

    lines = [f"{'model'.ljust(label)}  {bar((STREAMING, *stream))}  {(stream[1] - stream[0]) * 1000:6.0f} ms streaming"]
    for row in rows:
        started = next(at for at in (row.started, row.ended, row.queued) if at is not None)
        ended = end if row.ended is None else row.ended
        parts = [(WAITING, row.queued, started)] if started - row.queued > 1 / scale else []
        text = row.label if len(row.label) <= label else row.label[: label - 3] + "..."
        lines.append(f"{text.ljust(label)}  {bar(*parts, (RUNNING, started, ended))}  {note(row, stream[1], started)}")
    lines.append(f"{''.ljust(label)}  0{f'{(end - begin) * 1000:.0f} ms'.rjust(columns - 1)}")
    lines.append(f"{''.ljust(label)}  {STREAMING} the model talks   {WAITING} waits   {RUNNING} runs")
    return "\n".join(lines)


def note(row: Span, stream_end: float, started: float) -> str:
    """How long the call took, and what is remarkable about it."""
    took = f"{0 if row.ended is None else (row.ended - started) * 1000:6.0f} ms"
    if row.status != "ok":
        return f"{took} {row.status}"
    return f"{took} early" if started < stream_end else took
