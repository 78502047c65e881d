"""What a terminal gets: lines that fit its width, and colour if it wants any. Pipes get whole lines and no colour."""

import os
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import TextIO

from handrail.conversation.plain import plain

NARROWEST = 20
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
WORDS = {
    **dict.fromkeys(("allow", "allowed", "ok", "yes", "trusted"), GREEN),
    **dict.fromkeys(("ask", "asked", "note", "changed"), YELLOW),
    **dict.fromkeys(("deny", "denied", "error", "problem", "gone", "untrusted"), RED),
    **dict.fromkeys(("off", "-"), DIM),
}
"""The words that say how something stands, and their colours."""


def count_of(count: int, noun: str) -> str:
    """A number with its noun: `1 skill`, `2 skills`."""
    return f"{count} {noun}{'s' * (count != 1)}"


class ReportScreen:
    """The place that lines are written for: a terminal with its width and colours, or a pipe."""

    def __init__(self, stream: TextIO) -> None:
        terminal = stream.isatty()
        self.width: int | None = max(shutil.get_terminal_size().columns, NARROWEST) if terminal else None
        """Columns; None = as long as a line is."""
        self.coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "")

    def wrap(self, text: str, hang: int = 0) -> list[str]:
        """The text in lines that fit, made safe to show; all but the first are indented by `hang` columns."""
        shown = plain(text)
        if self.width is None:
            return [shown]
        hang = hang if hang <= self.width // 2 else 4
        lines: list[str] = []
        for part in shown.split("\n"):
            lead = part[: len(part) - len(part.lstrip())]
            indent = " " * hang if hang > len(lead) else f"{lead}  "
            lines += textwrap.wrap(
                part.lstrip(),
                self.width,
                initial_indent=lead,
                subsequent_indent=indent,
                break_on_hyphens=False,
                drop_whitespace=True,
            ) or [""]
        return lines

    def notice(self, text: str) -> str:
        """A line of the program about itself, as standard error gets it."""
        return "\n".join(self.wrap(f"handrail: {text}", 4)) + "\n"

    def table(self, rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
        """Rows in columns that line up; the last cell of each is wrapped behind the others."""
        lines = [[plain(cell) for cell in row] for row in rows]
        if not lines:
            return []
        widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]) - 1)]
        if self.width is not None:  # one long name must not push all texts to the edge
            widths = [min(width, self.width // 3) for width in widths]
        found: list[str] = []
        for line in lines:
            head = indent + "".join(f"{cell:<{width}}  " for cell, width in zip(line, widths, strict=False))
            found += self.wrap_row(head, line[-1])
        return found

    def wrap_row(self, head: str, text: str) -> list[str]:
        """A row, safe to show: its head, and the text in a column of its own, or below if there is no room."""
        head, text = plain(head), plain(text)
        if self.width is None or len(f"{head}{text}".rstrip()) <= self.width:
            return [f"{head}{text}".rstrip()]
        hang = len(head) if len(head) <= self.width // 2 else 4
        room = self.width - hang
        words = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
        if hang == len(head):
            return [f"{head}{words[0]}".rstrip(), *(" " * hang + each for each in words[1:])]
        return [*self.wrap(head.rstrip(), 4), *(" " * hang + each for each in words)]

    def paint(self, text: str, colour: str) -> str:
        """The text in a colour, if colours are wanted."""
        return f"\x1b[{colour}m{text}\x1b[0m" if self.coloured and text else text

    def paint_word(self, line: str) -> str:
        """The line with its first word coloured, if the word says how something stands."""
        lead = line[: len(line) - len(line.lstrip(" >"))]
        word = line[len(lead) :].split(" ", 1)[0].rstrip(":,")
        if not self.coloured or word not in WORDS:
            return line
        return lead + self.paint(word, WORDS[word]) + line[len(lead) + len(word) :]

    def heading(self, text: str) -> str:
        """A heading over other lines."""
        return self.paint(plain(text), BOLD)
