"""
Finds a text in a file and returns spans of bytes.

A line end in the wanted text matches any line end of the file, because the model cannot see which one it is. Quotes are
tried as given first; if nothing matches, typographic and plain quotes count as equal.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import AnyStr

from handrail.errors import ToolError
from handrail.files.source import FileSource
from handrail.files.text import UNITS, Encoding
from handrail.records import record

MAX_PLACES = 1_000_000
MAX_COUNTED = 1_000
"""Overlapping matches can be as many as the file has bytes, and each costs a search."""
MAX_FLEXIBLE = 10_000
MAX_DECODED = 256 * 1024 * 1024
SINGLE_QUOTES = "'\u2018\u2019\u201a\u201b\u2032\u02bc"
DOUBLE_QUOTES = '"\u201c\u201d\u201e\u201f\u2033'
QUOTES = {quote: family for family in (SINGLE_QUOTES, DOUBLE_QUOTES) for quote in family}
LOOK_BACK = 4

Span = tuple[int, int]


@record
class TextMatches:
    """The spans of all matches. `quotes`: they match only if quotes of other shapes count as equal."""

    spans: list[Span]
    quotes: bool = False


def one_line_end(text: str) -> str:
    """The text with CRLF replaced by a line feed."""
    return text.replace("\r\n", "\n")


def find_text(source: FileSource, encoding: Encoding, wanted: str, *, overlapping: bool) -> TextMatches:
    """Find all matches of the text; with `overlapping` also those that share characters, up to `MAX_COUNTED`."""
    wanted = one_line_end(wanted)
    if len(wanted) > source.size:
        return TextMatches([])
    look = _in_bytes if encoding.direct else _in_text
    spans = look(source, encoding, wanted, quotes=False, overlapping=overlapping)
    if spans or QUOTES.keys().isdisjoint(wanted) or _flexible(wanted, quotes=True) > MAX_FLEXIBLE:
        return TextMatches(spans)
    spans = look(source, encoding, wanted, quotes=True, overlapping=overlapping)
    return TextMatches(spans, quotes=bool(spans))


def _in_bytes(source: FileSource, encoding: Encoding, wanted: str, *, quotes: bool, overlapping: bool) -> list[Span]:
    search: Callable[[bytes, int], Span | None]
    if not quotes and not has_returns(source, wanted):
        if not encoding.has(wanted):
            return []
        needle = wanted.encode(encoding.name)
        search, longest = _literal(needle), len(needle)
    else:
        pattern = _pattern(wanted, lambda text: text.encode(encoding.name), encoding.has, quotes=quotes)
        if pattern is None:
            return []
        search, longest = _regular(re.compile(pattern)), 4 * len(wanted) + LOOK_BACK
    return _limit_spans(
        _scan(source, search, longest, len(encoding.mark), overlapping=overlapping), overlapping=overlapping
    )


def _scan(
    source: FileSource, search: Callable[[bytes, int], Span | None], longest: int, first: int, *, overlapping: bool
) -> Iterator[Span]:
    free = first
    for start, end, window in source.windows(longest, LOOK_BACK):
        base = 0 if len(window) == source.size else max(0, start - LOOK_BACK)
        at = search(window, max(free, start) - base)
        while at is not None and base + at[0] < end:
            yield base + at[0], base + at[1]
            free = base + (at[0] + 1 if overlapping else at[1])
            at = search(window, free - base)


def _literal(needle: bytes) -> Callable[[bytes, int], Span | None]:
    def search(window: bytes, start: int) -> Span | None:
        at = window.find(needle, start)
        return (at, at + len(needle)) if at >= 0 else None

    return search


def _regular(pattern: re.Pattern[AnyStr]) -> Callable[[AnyStr, int], Span | None]:
    def search(window: AnyStr, start: int) -> Span | None:
        found = pattern.search(window, start)
        return found.span() if found else None

    return search


def has_returns(source: FileSource, text: str) -> bool:
    """Whether the text has line ends and the file may have others than a line feed."""
    return ("\n" in text or "\r" in text) and any(b"\r" in window for _, _, window in source.windows())


def _flexible(wanted: str, *, quotes: bool) -> int:
    """How many characters of the text match several alternatives."""
    return sum(map(wanted.count, ("\n", *(QUOTES if quotes else ()))))


def _pattern(
    wanted: str, encoded: Callable[[str], AnyStr], has: Callable[[str], bool], *, quotes: bool
) -> AnyStr | None:
    """A regular expression for the text; None if the encoding lacks one of its characters."""
    if _flexible(wanted, quotes=quotes) > MAX_FLEXIBLE:
        raise ToolError(
            f"old_string has more than {MAX_FLEXIBLE:,} lines, which is the most in a file that may have line ends of "
            "several kinds. Replace it in parts, or write the file anew."
        )
    parts: list[AnyStr] = []
    for piece in re.split(f"([\r\n{''.join(QUOTES)}])", wanted):
        if piece == "\n":
            parts.append(encoded(r"(?:\r\n|(?<!\r)\n|\r(?!\n))"))
        elif piece == "\r":
            parts.append(encoded(r"\r(?!\n)"))
        elif quotes and piece in QUOTES:
            parts.append(encoded("(?:" + "|".join(filter(has, QUOTES[piece])) + ")"))
        elif has(piece):
            parts.append(encoded(re.escape(piece)))
        else:
            return None
    return encoded("").join(parts)


def _in_text(source: FileSource, encoding: Encoding, wanted: str, *, quotes: bool, overlapping: bool) -> list[Span]:
    if source.size > MAX_DECODED:
        raise ToolError(
            f"The file has {source.size:,} bytes in {encoding.shown}; files of more than {MAX_DECODED:,} bytes can "
            "only be edited in UTF-8 or an encoding of one byte per character. Change it with a program."
        )
    data = source.read(len(encoding.mark), source.size)
    text = encoding.decode(data)
    pattern = _pattern(wanted, str, encoding.has, quotes=quotes)
    if pattern is None:
        return []
    search = _regular(re.compile(pattern))
    spans = _limit_spans(_matches(text, search, overlapping=overlapping), overlapping=overlapping)
    return _byte_spans(data, text, encoding, spans)


def _matches(text: str, search: Callable[[str, int], Span | None], *, overlapping: bool) -> Iterator[Span]:
    at = search(text, 0)
    while at is not None:
        yield at
        at = search(text, at[0] + 1 if overlapping else at[1])


def _byte_spans(data: bytes, text: str, encoding: Encoding, spans: list[Span]) -> list[Span]:
    positions = sorted({position for span in spans for position in span})
    found = _unit_offsets(text, encoding, positions) if encoding.name in UNITS else _offsets(data, encoding, positions)
    first = len(encoding.mark)
    where = {position: first + offset for position, offset in zip(positions, found, strict=True)}
    return [(where[start], where[end]) for start, end in spans]


def _unit_offsets(text: str, encoding: Encoding, positions: list[int]) -> Iterator[int]:
    done = offset = 0
    for position in positions:
        offset += len(text[done:position].encode(encoding.name, "surrogatepass"))
        done = position
        yield offset


def _offsets(data: bytes, encoding: Encoding, positions: list[int]) -> Iterator[int]:
    """Line by line: in these encodings a line feed is never part of another character."""
    waiting = iter(positions)
    position = next(waiting, None)
    chars = start = 0
    while position is not None:
        end = data.find(b"\n", start) + 1 or len(data)
        line = data[start:end]
        text = encoding.decode(line)
        inside = offset = 0
        while position is not None and position <= chars + len(text):
            for char in text[inside : position - chars]:
                offset += _length(line, offset, char, encoding)
            inside = position - chars
            yield start + offset
            position = next(waiting, None)
        chars += len(text)
        start = end


def _length(line: bytes, offset: int, char: str, encoding: Encoding) -> int:
    """How many bytes the character has there."""
    if char < "\x80" or "\udc80" <= char <= "\udcff":
        return 1
    for length in (1, 2, 3):
        with suppress(UnicodeDecodeError):
            if line[offset : offset + length].decode(encoding.name) == char:
                return length
    return 4


def _limit_spans(spans: Iterator[Span], *, overlapping: bool) -> list[Span]:
    if overlapping:
        return list(islice(spans, MAX_COUNTED))
    taken = list(islice(spans, MAX_PLACES + 1))
    if len(taken) > MAX_PLACES:
        raise ToolError(f"The text occurs at more than {MAX_PLACES:,} places. Change the file with a program.")
    return taken
