"""Blocks of the conversation: what was typed, said and done, drawn as lines in the width of the moment."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.conversation.plain import plain
from handrail.lazy import lazy
from handrail.records import record
from handrail.tools.cards import Card, Tone
from handrail.tools.outcome import Status
from handrail.tui.call_lines import SHOWN_SECONDS, duration
from handrail.tui.interactive.diff import diff_lines
from handrail.tui.interactive.paint import Theme, paint
from handrail.tui.text import clip, columns, wrap

if TYPE_CHECKING:
    from handrail.tui.interactive import markdown
else:
    markdown = lazy("handrail.tui.interactive.markdown")  # it takes longer than the first prompt may

MAX_BODY = 12
"""How many lines of a result are shown; the transcript has them all."""
MAX_PROMPT = 20
"""How many lines of a prompt are shown."""
MAX_DIFF = 40
MAX_GROUP = 4
MIN_LABEL = 20
"""Columns that what was called gets before anything else does."""
TONES: dict[Status, Tone] = {Status.OK: "good", Status.ERROR: "bad", Status.DENIED: "warning"}


def tone_colour(tone: Tone, theme: Theme) -> str:
    """The colour of a tone."""
    return {"good": theme.good, "warning": theme.warning, "bad": theme.bad}.get(tone, "")


@record
class PromptBlock:
    """What the person sent."""

    text: str
    theme: Theme

    def lines(self, width: int) -> list[str]:
        """An empty line, and the beginning of the text behind a mark."""
        inner = max(width - 2, 1)
        head = "\n".join(self.text[: MAX_PROMPT * inner].split("\n")[:MAX_PROMPT])
        rows = [f"{' ' if at else '>'} {row}" for at, row in enumerate(wrap(plain(head), inner))]
        left_out = len(self.text) - len(head)
        more = [f"  (+{left_out:,} more characters, Ctrl+O shows them)"] if left_out else []
        return [
            "",
            *(paint(clip(row, width), self.theme.strong) for row in rows),
            *(paint(clip(row, width), self.theme.dim) for row in more),
        ]


@record
class AnswerBlock:
    """A part of an answer. `joins`: it goes on where the part before ended."""

    source: str
    theme: Theme
    joins: bool = False

    def lines(self, width: int) -> list[str]:
        """The Markdown drawn, below an empty line."""
        drawn = markdown.markdown_lines(self.source, width, self.theme)
        return drawn if self.joins or not drawn else ["", *drawn]


@record
class NoteBlock:
    """Something that the program says about itself, or the answer of a command."""

    text: str
    theme: Theme
    tone: Tone = "plain"
    dim: bool = False

    def lines(self, width: int) -> list[str]:
        """The text, wrapped."""
        colour = tone_colour(self.tone, self.theme) or (self.theme.dim if self.dim else "")
        rows = [row for line in plain(self.text).split("\n") for row in wrap(line, width, "  ")]
        return [paint(clip(row, width), colour) for row in rows]


@record
class CallBlock:
    """A call that is over: what was called, how it ended, and what came out."""

    label: str
    card: Card
    status: Status
    reason: str
    seconds: float
    theme: Theme

    def lines(self, width: int) -> list[str]:
        """A line that says how it went, and below it the result as far as it is worth the room."""
        theme = self.theme
        took = f" ({duration(self.seconds)})" if self.seconds >= SHOWN_SECONDS else ""
        end = self._end()
        tag = f" [{self.card.tag}]" if self.card.tag else ""
        if width - 2 - columns(took) - columns(tag) < MIN_LABEL:
            took = tag = ""
        room = width - 2 - columns(took) - columns(tag)
        label = clip(self.label, room if not end else max(room * 2 // 3, 8))
        rest = clip(f": {end}", max(room - columns(label), 0)) if end else ""
        mark = paint("*" if self.status is Status.OK else "x", tone_colour(TONES.get(self.status, "warning"), theme))
        head = f"{mark} {paint(label, theme.strong)}{rest}{paint(tag + took, theme.dim)}"
        return [head, *self._why(width), *body_lines(self.card, width, theme, wraps=self.status is not Status.OK)]

    def _why(self, width: int) -> list[str]:
        """Why it was refused, in full, unless the body says it."""
        reason = plain(self.reason).strip()
        is_said = self.status is not Status.DENIED or reason in (self.card.detail, self.card.body.strip())
        card = Card(self.label, body="" if is_said else reason)
        return body_lines(card, width, self.theme, wraps=True)

    def _end(self) -> str:
        return self.card.detail if self.card.detail not in self.label else ""


@record
class GroupBlock:
    """Several calls of one kind that went well."""

    card: Card
    theme: Theme

    def lines(self, width: int) -> list[str]:
        """One line for all, and the first few by name."""
        rows = self.card.body.split("\n")
        names = ", ".join(row.rpartition("/")[2] or row for row in rows[:MAX_GROUP])
        more = f", +{len(rows) - MAX_GROUP} more" if len(rows) > MAX_GROUP else ""
        mark = paint("*", self.theme.good)
        title = f"{self.card.title} {self.card.detail}"
        return [
            f"{mark} {paint(clip(title, width - 2), self.theme.strong)}",
            paint(clip(f"    {names}{more}", width), self.theme.dim),
        ]


def body_lines(
    card: Card, width: int, theme: Theme, most: int = MAX_BODY, *, wraps: bool = False, numbered: bool = True
) -> list[str]:
    """The body of a card below its line: indented, and no longer than it is worth; `wraps`: no line of it is cut."""
    if not card.body.strip():
        return []
    inner = max(width - 4, 8)
    if card.body_kind == "diff":
        rows, most = diff_lines(card.body, inner, theme, numbered=numbered), max(most, MAX_DIFF)
    elif card.body_kind == "markdown":
        rows = markdown.markdown_lines(card.body, inner, theme)
    else:
        lines = card.body.strip("\n").expandtabs(4).split("\n")
        shown = [part for row in lines for part in wrap(row, inner)] if wraps else lines
        rows = [paint(clip(row, inner), _row_colour(row, theme)) for row in shown]
    return [f"    {row}" for row in fold(rows, most, theme, from_end=card.body_kind == "code")]


def _row_colour(row: str, theme: Theme) -> str:
    """The colour of a line of a result: an open or a finished point of a list, or just a line."""
    return {"[x]": theme.good, "[>]": theme.accent}.get(row.lstrip()[:3], theme.dim)


def fold(rows: Sequence[str], most: int, theme: Theme, *, from_end: bool = False) -> list[str]:
    """At most so many rows, and how many were left out; of a program's output the end counts most."""
    if len(rows) <= most:
        return list(rows)
    note = paint(f"(+{len(rows) - most + 1} more lines, Ctrl+O shows them)", theme.dim)
    return [note, *rows[-most + 1 :]] if from_end else [*rows[: most - 1], note]
