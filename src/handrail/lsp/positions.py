"""
Positions in a text: the protocol counts UTF-16 units from the start of a line, Python counts characters.

Lines end at `\\n`, `\\r\\n` and `\\r` only: `str.splitlines` knows more line ends than the protocol does.
"""

import re

from handrail.records import record

LINE_END = re.compile(r"\r\n|\n|\r")
WORD = re.compile(r"\w+")


@record
class CodePosition:
    """A place in a text: line and character, both from 0."""

    line: int
    character: int


def split_text(text: str) -> list[str]:
    """The lines of a text, without their ends."""
    return LINE_END.split(text)


def to_utf16(line: str, character: int) -> int:
    """How many UTF-16 units stand before a character of the line."""
    before = line[: max(character, 0)]
    return len(before) if before.isascii() else len(before.encode("utf-16-le", "surrogatepass")) // 2


def from_utf16(line: str, units: int) -> int:
    """The character that begins after so many UTF-16 units, or holds that place; the end of the line if it is short."""
    if line.isascii():
        return min(max(units, 0), len(line))
    passed = 0
    for at, char in enumerate(line):
        passed += 2 if ord(char) > 0xFFFF else 1
        if passed > units:
            return at
    return len(line)


def find_name(lines: list[str], name: str, line: int | None = None) -> list[CodePosition]:
    """Where a name stands as a whole word: on one line, or on all of them."""
    start = r"(?<!\w)" if name[:1].isidentifier() or name[:1].isdigit() else ""
    end = r"(?!\w)" if name[-1:].isalnum() or name[-1:] == "_" else ""
    pattern = re.compile(f"{start}{re.escape(name)}{end}")
    numbers = range(len(lines)) if line is None else [line] if 0 <= line < len(lines) else []
    return [CodePosition(number, found.start()) for number in numbers for found in pattern.finditer(lines[number])]
