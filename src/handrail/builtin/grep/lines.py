"""Formats ripgrep's JSON events as lines, in bounded memory."""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from handrail.builtin.grep.query import GrepInput

MAX_EVENT = 1_000_000
MAX_LINE = 500
BEFORE_MATCH = 100
# quotes within a text are escaped, so this can only stand behind it
NUMBER = re.compile(rb'\},"line_number":(\d+|null),"absolute_offset"')
BEGINNING = re.compile(
    rb'\{"type":"(match|context)","data":\{"path":(\{.*?\}),"lines":\{"(text|bytes)":"'
    rb'((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)',  # whole escapes only
    re.DOTALL,
)


def read_events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The events of a run. Very long events are shortened."""
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *whole, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in whole:
                yield json.loads(line) if len(line) <= MAX_EVENT else shorten_event(line)
        elif len(rest) > 2 * MAX_EVENT:
            _forget_the_middle(rest)


def _forget_the_middle(rest: bytearray) -> None:
    """Keep the beginning, the line number if it was seen, and the newest bytes, which may hold a part of it."""
    number = NUMBER.search(rest, MAX_EVENT)
    kept = number[0] if number else b""
    rest[MAX_EVENT : len(rest) - 100] = kept


def shorten_event(line: bytes) -> dict[str, Any]:
    """The event of a very long line, with path, number and beginning."""
    beginning = BEGINNING.match(line[: MAX_EVENT // 2])
    if not beginning:
        return {"type": "other"}
    kind, path, key, text = beginning.groups()
    number = NUMBER.search(line)
    whole = text if key == b"text" else text[: len(text) // 4 * 4]
    template = b'{"type":"%b","data":{"path":%b,"lines":{"%b":"%b"},"line_number":%b,"submatches":[]}}'
    event: dict[str, Any] = json.loads(template % (kind, path, key, whole, number[1] if number else b"null"))
    return event


def event_bytes(value: dict[str, str]) -> bytes:
    """The bytes of a text in an event, which is base64 if it is not UTF-8."""
    return value["text"].encode() if "text" in value else b64decode(value["bytes"])


class MatchFormatter:
    """Formats events as lines: `path:3:text` for a match, `path-2-text` for context, `--` between parts."""

    def __init__(self, args: GrepInput, display_name: Callable[[bytes], str]) -> None:
        self._args = args
        self._display_name = cache(display_name)
        self._with_context = bool(args.lines_before or args.lines_after)
        self._last: tuple[bytes, int] | None = None
        self._binary: bytes | None = None

    def lines(self, event: dict[str, Any], names: Mapping[bytes, bytes]) -> Iterator[str]:
        """The lines of one event. `names`: file names by the paths that ripgrep was given."""
        data = event.get("data", {})
        match event["type"]:
            case "match" | "context" as kind:
                path, text = names[event_bytes(data["path"])], event_bytes(data["lines"])
                if path == self._binary:
                    return
                if b"\0" in text:
                    yield from self._not_shown(path)
                else:
                    yield from self._numbered_lines(path, text, data, ":" if kind == "match" else "-")
            case "end" if data.get("binary_offset") is not None:
                yield from self._not_shown(names[event_bytes(data["path"])])

    def _not_shown(self, path: bytes) -> Iterator[str]:
        if path != self._binary:
            yield f"{self._display_name(path)}: binary file matches, the rest of it is not shown"
        self._binary = path

    def _numbered_lines(self, path: bytes, text: bytes, data: dict[str, Any], sign: str) -> Iterator[str]:
        first, parts = data["line_number"] or 1, data["submatches"]
        if self._args.only_matching and parts:
            for part in parts:
                number = first + text.count(b"\n", 0, part["start"])
                for at, row in enumerate(event_bytes(part["match"]).split(b"\n"), number):
                    if row.removesuffix(b"\r"):
                        yield self._line(path, at, sign, row, 0)
            return
        if self._args.only_matching and sign == "-":
            return
        rows = text.removesuffix(b"\n").split(b"\n")
        if self._with_context and self._last not in (None, (path, first - 1)):
            yield "--"
        start = parts[0]["start"] if parts else 0
        for at, row in enumerate(rows):
            yield self._line(path, first + at, sign, row, start if at == 0 else 0)
        self._last = (path, first + len(rows) - 1)

    def _line(self, path: bytes, number: int, sign: str, row: bytes, start: int) -> str:
        place = f"{number}{sign}" if self._args.numbers else ""
        text = excerpt(row.removesuffix(b"\r"), start)
        return f"{self._display_name(path)}{sign}{place}{text}"


def excerpt(row: bytes, start: int) -> str:
    """The line; of a very long one, the part around its first match."""
    text = row.decode("utf-8", "replace")
    if len(text) <= MAX_LINE:
        return text
    begin = max(len(row[:start].decode("utf-8", "replace")) - BEFORE_MATCH, 0)
    part = text[begin : begin + MAX_LINE]
    before = "..." if begin else ""
    after = "..." if begin + MAX_LINE < len(text) else ""
    return f"{before}{part}{after} [cut from {len(text):,} characters]"
