"""
Removes secrets and paths from a recorded stream.

A model writes a path or a key in many small deltas, so no single event holds it. The deltas of one block are joined,
edited as one text, and put back into their events. A chunk boundary inside a changed event moves to its end; all other
bytes and boundaries stay. An event that broke off in the middle is left out: it could hold part of a secret, and no
reader understands it.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from handrail.conversation.redact import TextEdit, apply_edits
from handrail.providers.wire import echo

LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
TORN = re.compile(rb"data: *[{\[]")
IDENTITIES = ("index", "output_index", "content_index", "summary_index", "item_id")

Edits: TypeAlias = Callable[[str], Sequence[TextEdit]]
Channel: TypeAlias = tuple[Any, ...]


@dataclass(slots=True)
class _JsonEvent:
    """Bytes of the stream from `start` to `end` that hold one JSON value."""

    start: int
    end: int
    value: Any
    line_end: bytes = b""
    prefix: bytes = b""
    changed: bool = False

    @property
    def bytes(self) -> bytes:
        return self.prefix + echo(self.value) + self.line_end


@dataclass(slots=True)
class _Leaf:
    """A string inside an event."""

    event: _JsonEvent
    holder: Any
    key: Any
    text: str


@dataclass(slots=True)
class _ParsedStream:
    events: list[_JsonEvent] = field(default_factory=list)
    plain: list[tuple[int, int]] = field(default_factory=list)  # bytes that are no JSON
    torn: list[tuple[int, int]] = field(default_factory=list)


def scrub(chunks: Sequence[bytes], edits: Edits) -> tuple[bytes, ...]:
    """The chunks with all edits made."""
    body = b"".join(chunks)
    stream = _parse(body)
    _edit_events(stream.events, edits)
    changes = [(event.start, event.end, event.bytes) for event in stream.events if event.changed]
    changes += _edit_plain(body, stream.plain, edits)
    changes += [(start, end, b"") for start, end in stream.torn]
    return _rebuilt(body, chunks, sorted(changes)) if changes else tuple(chunks)


def _edit_events(events: Sequence[_JsonEvent], edits: Edits) -> None:
    channels: dict[Channel, list[_Leaf]] = {}
    for number, event in enumerate(events):
        holder = {"": event.value}
        for leaf, path in _leaves(event, holder, "", ()):
            # what is not a delta is a whole text by itself
            channels.setdefault(path if "delta" in path else (number, *path), []).append(leaf)
        event.value = holder[""]
    for leaves in channels.values():
        pieces = [leaf.text for leaf in leaves]
        for leaf, text in zip(leaves, _spread(pieces, edits("".join(pieces))), strict=True):
            # and each by itself, in case they do not belong together
            new = apply_edits(text, edits(text))
            if new != leaf.text:
                leaf.holder[leaf.key] = new
                leaf.event.changed = True


def _leaves(event: _JsonEvent, holder: Any, key: Any, path: Channel) -> Iterator[tuple[_Leaf, Channel]]:
    value = holder[key]
    match value:
        case str():
            yield _Leaf(event, holder, key, value), path
        case dict():
            identity = tuple(value.get(name) for name in IDENTITIES)
            for name in value:
                yield from _leaves(event, value, name, (*path, identity, name))
        case list():
            for at, each in enumerate(value):
                # entries with an index need no position
                place = () if isinstance(each, dict) and "index" in each else (at,)
                yield from _leaves(event, value, at, (*path, *place))


def _spread(pieces: Sequence[str], edits: Sequence[TextEdit]) -> Iterator[str]:
    """The pieces after edits of the whole: a replacement goes where the edit begins, and the edited text is removed."""
    start = 0
    for piece in pieces:
        end = start + len(piece)
        own = [
            TextEdit(max(edit.start - start, 0), min(edit.end, end) - start, edit.text if edit.start >= start else "")
            for edit in edits
            if edit.start < end and edit.end > start
        ]
        yield apply_edits(piece, own)
        start = end


def _parse(body: bytes) -> _ParsedStream:
    stream = _ParsedStream()
    if body.lstrip()[:1] in {b"{", b"["}:
        value = _json(body)
        if value is not None:
            stream.events.append(_JsonEvent(0, len(body), value))
            return stream
    data: list[tuple[int, int]] = []
    for match in LINE.finditer(body):
        line = match[0].rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(match.span())
            continue
        if data and not line:
            _add(stream, body, data)
            data = []
        if line:
            stream.plain.append(match.span())
    if data:
        _add(stream, body, data)
        if data[-1] in stream.plain[-1:] and TORN.match(body, data[-1][0]):
            stream.torn.append(stream.plain.pop())
    return stream


def _add(stream: _ParsedStream, body: bytes, lines: list[tuple[int, int]]) -> None:
    texts = [body[start:end].rstrip(b"\r\n").removeprefix(b"data:").removeprefix(b" ") for start, end in lines]
    value = _json(b"\n".join(texts))
    # lines with something else between them are not contiguous bytes
    whole = all(a[1] == b[0] for a, b in itertools.pairwise(lines))
    if value is None or not whole:
        stream.plain += lines
        return
    first, last = lines[0], lines[-1]
    line = body[last[0] : last[1]]
    stream.events.append(_JsonEvent(first[0], last[1], value, line[len(line.rstrip(b"\r\n")) :], b"data: "))


def _json(data: bytes) -> Any:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _edit_plain(body: bytes, spans: Sequence[tuple[int, int]], edits: Edits) -> list[tuple[int, int, bytes]]:
    changes = []
    for start, end in spans:
        text = body[start:end].decode("utf-8", "surrogateescape")
        if found := edits(text):
            changes.append((start, end, apply_edits(text, found).encode("utf-8", "surrogateescape")))
    return changes


def _rebuilt(body: bytes, chunks: Sequence[bytes], changes: Sequence[tuple[int, int, bytes]]) -> tuple[bytes, ...]:
    pieces: list[bytes] = []
    boundaries: list[int] = []
    at = size = 0
    waiting = iter(_boundaries(chunks))
    boundary = next(waiting, None)
    for start, end, new in (*changes, (len(body), len(body), b"")):
        while boundary is not None and boundary <= start:
            boundaries.append(size + boundary - at)
            boundary = next(waiting, None)
        pieces += [body[at:start], new]
        size += start - at + len(new)
        while boundary is not None and boundary < end:
            boundaries.append(size)
            boundary = next(waiting, None)
        at = end
    whole = b"".join(pieces)
    cuts = [0, *boundaries, len(whole)]
    return tuple(whole[a:b] for a, b in itertools.pairwise(cuts) if a < b)


def _boundaries(chunks: Sequence[bytes]) -> Iterator[int]:
    at = 0
    for chunk in chunks[:-1]:
        at += len(chunk)
        yield at
