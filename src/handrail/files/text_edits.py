"""
An edit as spans of bytes and their replacements: how it is written and how it is shown.

The patch is computed from the lines around the spans only, so its cost does not grow with the file.
"""

from collections.abc import Iterator

from handrail.files.adapt_text import LINE_END, adapt_text
from handrail.files.copying import Piece
from handrail.files.diff import Hunk, make_hunks, split_lines
from handrail.files.find_text import Span, TextMatches, has_returns, one_line_end
from handrail.files.source import FileSource
from handrail.files.text import UNITS, Encoding
from handrail.records import record

SURROUNDINGS = 64 * 1024
NEARBY = 256
JOINED = 10_000
MAX_SHOWN_BYTES = 1024 * 1024
MAX_SHOWN_PLACES = 1_000
CONTEXT_LINES = 3


@record
class TextEdits:
    """Spans of a file and the bytes that replace them."""

    source: FileSource
    encoding: Encoding
    spans: list[Span]
    texts: list[bytes]

    def pieces(self) -> Iterator[Piece]:
        """The whole file after the edit."""
        return self._pieces(0, self.source.size, 0, len(self.spans))

    def _pieces(self, at: int, end: int, first: int, last: int) -> Iterator[Piece]:
        """Join small pieces, because there may be a million of them; keep large ones as they are."""
        small: list[Piece] = []
        for (start, stop), text in zip(self.spans[first:last], self.texts[first:last], strict=True):
            if start - at > SURROUNDINGS or len(small) > JOINED:
                yield b"".join(small)
                small = []
                yield from self.source.pieces(at, start)
            else:
                small.append(self.source.read(at, start))
            small.append(text)
            at = stop
        yield b"".join(small)
        yield from self.source.pieces(at, end)

    def patch(self) -> tuple[list[Hunk], int]:
        """The changed regions with the lines around them, and how many spans are left out."""
        patch: list[Hunk] = []
        shown = 0
        room, at, line, moved = MAX_SHOWN_BYTES, len(self.encoding.mark), 1, 0
        for start, end, first, last in self._regions():
            room -= end - start
            if room < 0:
                break
            line += self._lines_between(at, start)
            at = start
            old = split_lines(self.encoding.decode(self.source.read(start, end)))
            new = split_lines(self.encoding.decode(b"".join(self._pieces(start, end, first, last))))
            patch += make_hunks(old, new, line, line + moved)
            moved += len(new) - len(old)
            shown = last
        return patch, len(self.spans) - shown

    def lines(self, limit: int) -> list[int]:
        """The numbers of the lines where the first spans begin."""
        numbers: list[int] = []
        at, line = len(self.encoding.mark), 1
        for start, _ in self.spans[:limit]:
            line += self._lines_between(at, start)
            at = start
            numbers.append(line)
        return numbers

    def _regions(self) -> Iterator[tuple[int, int, int, int]]:
        """(begin, end, first span, end of the spans) of each region of changed lines; at most `MAX_SHOWN_PLACES`."""
        index, most = 0, min(len(self.spans), MAX_SHOWN_PLACES)
        while index < most:
            first = index
            begin = self._line_before(self.spans[index][0], CONTEXT_LINES)
            end = self._line_after(self.spans[index][1], CONTEXT_LINES)
            index += 1
            while index < most and self._line_before(self.spans[index][0], CONTEXT_LINES) <= end:
                longer = self._line_after(self.spans[index][1], CONTEXT_LINES)
                if longer - begin > MAX_SHOWN_BYTES:
                    most = index
                    break
                end = longer
                index += 1
            yield begin, min(end, self.spans[index][0]) if index < len(self.spans) else end, first, index

    def _line_before(self, position: int, lines: int) -> int:
        """The start of the line that is `lines` above the position, within `SURROUNDINGS` bytes."""
        low = max(len(self.encoding.mark), position - SURROUNDINGS)
        data = self.source.read(low, position)
        at = len(data)
        for _ in range(lines + 1):
            at = data.rfind(self._line_feed, 0, at)
            while at % self._unit and at >= 0:
                at = data.rfind(self._line_feed, 0, at + self._unit - 1)
            if at < 0:
                return low
        return low + at + self._unit

    def _line_after(self, position: int, lines: int) -> int:
        """The end of the line that is `lines` below the position, within `SURROUNDINGS` bytes."""
        high = min(self.source.size, position + SURROUNDINGS)
        data = self.source.read(position, high)
        at = -self._unit
        for _ in range(lines + 1):
            at = data.find(self._line_feed, at + self._unit)
            while at % self._unit and at >= 0:
                at = data.find(self._line_feed, at + 1)
            if at < 0:
                return high
        return position + at + self._unit

    @property
    def _unit(self) -> int:
        return UNITS.get(self.encoding.name, 1)

    @property
    def _line_feed(self) -> bytes:
        return "\n".encode(self.encoding.name)

    def _lines_between(self, start: int, end: int) -> int:
        if self.encoding.direct:
            return self.source.count(b"\n", start, end)
        return self.encoding.decode(self.source.read(start, end)).count("\n")


def make_edits(
    source: FileSource, encoding: Encoding, found: TextMatches, change: tuple[str, str], file: str
) -> TextEdits:
    """Build the edit that replaces every match of the first text of the change by the second."""
    old, new = change
    if not found.quotes and not has_returns(source, old + new):
        text = encoding.encode(one_line_end(new), file)
        return TextEdits(source, encoding, found.spans, [text] * len(found.spans))
    texts = []
    known: dict[tuple[str, str], bytes] = {}
    for start, end in found.spans:
        standing = encoding.decode(source.read(start, end))
        line_end = "" if LINE_END.search(standing) else line_end_at(source, encoding, start, end)
        if (standing, line_end) not in known:
            fitting = adapt_text(standing, old, new, line_end, quotes=found.quotes)
            known[standing, line_end] = encoding.encode(fitting, file)
        texts.append(known[standing, line_end])
    return TextEdits(source, encoding, found.spans, texts)


def line_end_at(source: FileSource, encoding: Encoding, start: int, end: int) -> str:
    """The end of the line that holds the span; else of the line above; else of the first line; else a line feed."""
    first, unit = len(encoding.mark), UNITS.get(encoding.name, 1)
    places = (
        (end, end + NEARBY, 0),
        (end, end + SURROUNDINGS, 0),
        (start - NEARBY, start, -1),
        (start - SURROUNDINGS, start, -1),
        (0, SURROUNDINGS, 0),
    )
    for low, high, which in places:
        text = encoding.decode(source.read(max(low, first), high))
        if text.endswith("\r"):  # half of a pair?
            text = encoding.decode(source.read(max(low, first), high + unit))
        if ends := LINE_END.findall(text):
            return str(ends[which])
    return "\n"
