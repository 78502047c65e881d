"""Text in the columns of a terminal: how wide it is, cut to one line, or wrapped."""

import unicodedata
from collections.abc import Iterator

WIDE = frozenset("WF")
ZERO = frozenset(("Mn", "Me", "Cf"))
EMOJI_STYLE = "\ufe0f"
"""Makes a narrow character wide in terminals that know it."""
MORE = "..."


def char_columns(char: str) -> int:
    """How many columns a character takes at the most: terminals differ in what they join into one."""
    if char.isascii() or char == EMOJI_STYLE:
        return 1
    if unicodedata.category(char) in ZERO:
        return 0
    return 2 if unicodedata.east_asian_width(char) in WIDE else 1


def columns(text: str) -> int:
    """How many columns a line takes at the most."""
    return len(text) if text.isascii() else sum(map(char_columns, text))


def clip(text: str, width: int) -> str:
    """The text as one line that fits; a cut one ends with dots."""
    line = text.replace("\n", " ").replace("\t", " ")
    if columns(line) <= width:
        return line
    return _head(line, max(width - len(MORE), 0)) + MORE[: max(width, 0)]


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """The text in lines that fit, broken at spaces where possible; all but the first begin with the indent."""
    lines: list[str] = []
    for number, line in enumerate(text.expandtabs(4).split("\n")):
        rest, start = line.rstrip(), indent if number else ""
        while True:
            piece = _piece(rest, max(width - len(start), 10))
            lines.append(start + piece.rstrip())
            rest, start = rest[len(piece) :].lstrip(), indent
            if not rest:
                break
    return lines


def _piece(text: str, width: int) -> str:
    """The beginning of a text that fits into one line."""
    if columns(text) <= width:
        return text
    head = _head(text, width)
    words, _, _ = head.rpartition(" ")
    return f"{words} " if words.strip() and not text[len(head) :].startswith(" ") else head


def _head(text: str, width: int) -> str:
    return "".join(_fitting(text, width))


def _fitting(text: str, width: int) -> Iterator[str]:
    for char in text:
        width -= char_columns(char)
        if width < 0:
            return
        yield char
