"""Calls as single lines, drawn from cards: what is called, how it runs, how it ended."""

from handrail.conversation.plain import plain
from handrail.tools.cards import Card, Tone
from handrail.tools.outcome import Outcome, Status
from handrail.tui.text import clip, wrap

TONES: dict[Status, Tone] = {Status.OK: "plain", Status.ERROR: "bad", Status.DENIED: "warning"}
SHOWN_SECONDS = 1.0
"""From this many seconds on, a line says how long a call took."""


def label(card: Card) -> str:
    """A call in one line: its title, and its subject from the detail or the first line of the body."""
    return f"{card.title} {card.detail or card.body.partition(chr(10))[0]}".strip()


def gist(card: Card) -> str:
    """A result in one line: its detail, or the last line of a program's output, which tells how it went."""
    lines = card.body.strip().splitlines()
    if card.body_kind != "code" or not lines:
        return card.detail or "done"
    said = " ".join(lines[-1].split())
    return f"{card.detail}, {said}" if card.detail else said


def running_line(call: str, seconds: float, progress: str, others: int, width: int) -> str:
    """A call that runs: for how long, what it said last, and how many others run."""
    more = f"(+{others} more)" if others else ""
    return clip(", ".join(filter(None, (clip(call, max(width // 2, 20)), duration(seconds), more, progress))), width)


def finished_lines(call: str, outcome: Outcome, card: Card, width: int) -> list[str]:
    """A call that is over: its result in one line, or why it was refused, as many lines as that takes."""
    seconds = outcome.timings.ran
    took = f" ({duration(seconds)})" if seconds >= SHOWN_SECONDS else ""
    line = f"{clip(call, max(width // 2, 20))}: {_end(outcome, card)}"
    if outcome.status is Status.DENIED:
        return wrap(plain(line), width, "    ")
    return [clip(line, width - len(took)) + took]


def _end(outcome: Outcome, card: Card) -> str:
    first = card.body.strip().partition("\n")[0]
    match outcome.status:
        case Status.OK:
            return gist(card)
        case Status.DENIED:
            return f"refused: {outcome.decision.reason if outcome.decision else first}"
        case Status.ERROR if card.body_kind == "code":
            return gist(card)
        case _:
            return ": ".join(filter(None, (card.detail, first)))


def duration(seconds: float) -> str:
    """Seconds for people: 5 s, 2 min 5 s, 1 h 3 min."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
