"""A unified diff as lines of a terminal: with line numbers, and the words that changed marked."""

import difflib
import re
from collections.abc import Iterator, Sequence

from handrail.tui.interactive.paint import Theme, paint
from handrail.tui.text import clip

HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
WORDS = re.compile(r"\w+|\s+|[^\w\s]")
NO_NEWLINE = "\\ No newline at end of file"
MAX_COMPARED = 500
"""Longer lines are not compared word by word."""


def diff_lines(diff: str, width: int, theme: Theme, *, numbered: bool = True) -> list[str]:
    """The diff drawn in lines that fit; without numbers if it is not known where in its file it belongs."""
    lines = diff.split("\n")
    if lines.count(NO_NEWLINE) > 1:  # neither text ends with one, so that did not change
        lines = [line for line in lines if line != NO_NEWLINE]
    rows = list(_rows(lines))
    digits = max((len(str(number)) for number, _, _ in rows if number), default=1)
    drawn: list[str] = []
    for at, (number, mark, text) in enumerate(rows):
        if mark == "@":
            if drawn:
                drawn.append(paint(" " * (digits - 1) + "...", theme.dim))
            continue
        head = f"{number or '':>{digits}} {mark} " if numbered else f"{mark} "
        shown = clip(text.expandtabs(4), max(width - len(head), 1))
        colour = {"+": theme.added, "-": theme.removed}.get(mark, "")
        other = _partner(rows, at)
        if colour and other is not None and shown == text.expandtabs(4):
            drawn.append(paint(head, colour) + _mark_words(shown, other.expandtabs(4), colour, theme))
        else:
            drawn.append(paint(head, colour or theme.dim) + paint(shown, colour))
    return drawn


Row = tuple[int, str, str]
"""Line number (0 = none), mark (`+`, `-`, blank, `@` for a gap), text."""


def _rows(lines: Sequence[str]) -> Iterator[Row]:
    old = new = 0
    for line in lines:
        if found := HUNK.match(line):
            old, new = int(found[1]), int(found[2])
            yield 0, "@", ""
            continue
        mark, text = line[:1], line[1:]
        if mark == "-":
            yield old, "-", text
            old += 1
        elif mark == "+":
            yield new, "+", text
            new += 1
        elif mark == " ":
            yield new, " ", text
            old, new = old + 1, new + 1
        elif line:
            yield 0, " ", line


def _partner(rows: Sequence[Row], at: int) -> str | None:
    """The line that this one took the place of, or that took its place, if as many lines came as went."""
    mark = rows[at][1]
    begin = at
    while begin > 0 and rows[begin - 1][1] in ("+", "-"):
        begin -= 1
    end = at
    while end + 1 < len(rows) and rows[end + 1][1] in ("+", "-"):
        end += 1
    group = rows[begin : end + 1]
    gone = [text for _, each, text in group if each == "-"]
    come = [text for _, each, text in group if each == "+"]
    if len(gone) != len(come) or [each for _, each, _ in group] != ["-"] * len(gone) + ["+"] * len(come):
        return None
    return come[at - begin] if mark == "-" else gone[at - begin - len(gone)]


def _mark_words(text: str, other: str, colour: str, theme: Theme) -> str:
    """The text in its colour, with the words marked that the other line does not have."""
    if max(len(text), len(other)) > MAX_COMPARED:
        return paint(text, colour)
    ours, theirs = WORDS.findall(text), WORDS.findall(other)
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    if matcher.ratio() < 0.4:  # they have little in common, so marks would only be noise
        return paint(text, colour)
    drawn = ""
    for kind, start, end, _, _ in matcher.get_opcodes():
        words = "".join(ours[start:end])
        drawn += paint(words, colour if kind == "equal" else f"{colour};{theme.changed_word}")
    return drawn
