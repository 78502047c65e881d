"""Shows lines of a text of any size and encoding, in bounded memory."""

from collections.abc import Iterator
from typing import AnyStr

from handrail.errors import ToolError
from handrail.files.source import FileSource
from handrail.files.text import UNITS, Encoding
from handrail.records import record
from handrail.tools.wording import several

MAX_TOKENS = 25_000
BYTES_A_TOKEN = 4
MAX_BYTES = MAX_TOKENS * BYTES_A_TOKEN
WINDOW = 4 * MAX_BYTES + 64
"""This many bytes of any encoding hold at least as much text as may be shown."""


@record
class LineRange:
    """The wanted lines. `limit` None = as many as fit."""

    offset: int = 1
    limit: int | None = None

    @property
    def first(self) -> int:
        return max(self.offset, 1)


@record
class TextPart:
    """A range of lines: with numbers as shown, and as they are."""

    text: str
    lines: int
    total: int
    content: str = ""


def show_lines(source: FileSource, encoding: Encoding, wanted: LineRange, name: str) -> TextPart:
    """`N<TAB>line` for the wanted lines, cut if they are too long for one result, with a notice at the top."""
    lines = text_lines(source, encoding)
    total = lines.total
    first = wanted.first
    if not total:
        return TextPart(f"{name} exists and is empty.", 0, 0)
    if first > total:
        return TextPart(f"{name} has {several(total, 'line')}, so there is nothing from line {first:,} on.", 0, total)
    asked = min(total - first + 1, wanted.limit or total)
    whole, cut = lines.window(first, asked)
    entries = [f"{number}\t{line}" for number, line in enumerate(whole, first)]
    if len(entries) == asked and size(text := "\n".join(entries)) <= MAX_BYTES:
        return TextPart(text, asked, total, "\n".join(whole))
    shown = fitting(entries)
    if not shown:
        return _one_long_line(whole[0] if whole else cut, first, total)
    upto = first + len(shown) - 1
    if wanted.limit:
        raise ToolError(
            f"Lines {first:,} to {first + asked - 1:,} of {name!r} are more than {MAX_TOKENS:,} tokens. "
            f"Ask for less: offset={first} with limit={len(shown)} fits."
        )
    notice = f"PARTIAL: lines {first} to {upto} of {total}; read on with offset={upto + 1}."
    return TextPart("\n".join([notice, *shown]), len(shown), total, "\n".join(whole[: len(shown)]))


def fitting(entries: list[str]) -> list[str]:
    """The first entries, as many as may be shown."""
    room = MAX_BYTES
    for at, entry in enumerate(entries):
        room -= size(entry) + 1
        if room < 0:
            return entries[:at]
    return entries


def size(text: str) -> int:
    """The bytes of a text in UTF-8, from which its tokens are estimated."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _one_long_line(line: str, number: int, total: int) -> TextPart:
    shown = line.encode("utf-8", "surrogatepass")[:MAX_BYTES].decode("utf-8", "ignore")
    further = f" Read the lines after it with offset={number + 1}." if number < total else ""
    notice = f"PARTIAL: line {number} alone is longer than fits; its first {len(shown):,} characters follow.{further}"
    return TextPart(f"{notice}\n{number}\t{shown}", 1, total, shown)


def text_lines(source: FileSource, encoding: Encoding) -> "SmallText | TextLines":
    """The lines of a source. They end with a line feed, or with a carriage return if there are no line feeds."""
    if source.is_held and source.size <= WINDOW and encoding.name == "utf-8":
        return SmallText(encoding.decode(source.read(len(encoding.mark), source.size)))
    return TextLines(source, encoding)


class SmallText:
    """The lines of a text that is decoded at once."""

    def __init__(self, text: str) -> None:
        self._has_returns = "\r" in text
        self._lines = text.split("\r" if self._has_returns and "\n" not in text else "\n")
        if not self._lines[-1]:
            self._lines.pop()
        self.total = len(self._lines)

    def window(self, first: int, count: int) -> tuple[list[str], str]:
        """`count` lines from `first` on; there is no rest."""
        lines = self._lines[first - 1 : first - 1 + count]
        return ([line.removesuffix("\r") for line in lines] if self._has_returns else lines), ""


class TextLines:
    """The lines of a source of any size and encoding."""

    def __init__(self, source: FileSource, encoding: Encoding) -> None:
        self._source = source
        self._encoding = encoding
        self._mark = len(encoding.mark)
        self._end = "\n"
        self._counts = self._count_line_ends()
        if not any(self._counts) and source.size <= WINDOW and "\r" in self._text(0, source.size):
            self._end = "\r"
            self._counts = self._count_line_ends()
        unfinished = source.size > self._mark and not self._text(source.size - 8, source.size).endswith(self._end)
        self.total = sum(self._counts) + unfinished

    def window(self, first: int, count: int) -> tuple[list[str], str]:
        """At most `count` complete lines from `first` on, within one window, and the rest of the window."""
        start = self._start_of(first)
        text = self._text(start, start + WINDOW)
        lines = text.split(self._end)
        rest = lines[-1]
        if start + WINDOW < self._source.size or not rest:
            lines.pop()
        chosen = lines[:count]
        return ([line.removesuffix("\r") for line in chosen] if "\r" in text else chosen), rest

    def _windows(self) -> Iterator[tuple[int, bytes]]:
        """The bytes after the mark, with their positions."""
        for start, _, data in self._source.windows():
            yield (start, data) if start or not self._mark else (self._mark, data[self._mark :])

    def _count_line_ends(self) -> list[int]:
        if self._encoding.name in UNITS:
            return [self._encoding.decode(data).count(self._end) for _, data in self._windows()]
        return [data.count(self._end.encode()) for _, data in self._windows()]

    def _text(self, start: int, end: int) -> str:
        return self._encoding.decode(self._source.read(max(start, self._mark), end))

    def _start_of(self, line: int) -> int:
        """The position where a line begins."""
        before = line - 1
        for count, (start, data) in zip(self._counts, self._windows(), strict=True):
            if before <= count:
                return start + self._behind(data, before)
            before -= count
        return self._source.size

    def _behind(self, data: bytes, number: int) -> int:
        """The position after the given line end of a window."""
        if self._encoding.name in UNITS:
            text = self._encoding.decode(data)
            return len(text[: behind(text, self._end, number)].encode(self._encoding.name, "surrogatepass"))
        return behind(data, self._end.encode(), number)


def behind(text: AnyStr, sign: AnyStr, number: int) -> int:
    """The position after the given occurrence of a sign; 0 for none."""
    at = -1
    for _ in range(number):
        at = text.index(sign, at + 1)
    return at + 1
