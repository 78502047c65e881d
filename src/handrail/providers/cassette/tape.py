"""
The file format: JSON lines, so that cassettes can be read and their changes reviewed.

    {"handrail_cassette": 1, "provider": ..., "base_url": ..., "model": ..., "note": ...}
    {"request": 1, "api": ..., "head": {...}}                   one recording begins; all but the conversation
    {"message": {...}}                                          the conversation, one line per message
    {"answer": 200, "headers": {...}}                           or {"failed": "connect", "why": ...}
    {"chunk": "...", "after": 0.012}                            as the bytes came; `after` seconds, if timed
    {"end": "whole"}                                            or cut, aborted; with `why`

A request that continues an earlier one names it (`like`) and how many of its messages it shares (`keep`); an equal
head is left out. A chunk that is not UTF-8 text is stored as `base64`. A recording without `end` was cut off by a crash
and is ignored.
"""

import base64
import codecs
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from handrail.errors import CassetteError
from handrail.providers.cassette.canonical import Canonical, digest
from handrail.records import record

VERSION = 1
MAX_SIZE = 512 * 1024 * 1024
MAX_FIRST_LINE = 64 * 1024

End: TypeAlias = Literal["whole", "cut", "aborted", "failed"]


@record
class Header:
    """The provider and model that were recorded, so that a replay needs no options. `note` says where it comes from."""

    provider: str = ""
    base_url: str = ""
    model: str = ""
    note: str = ""


@record
class Chunk:
    """Bytes that arrived together. `after` is the time since the request or the previous chunk; None = not timed."""

    data: bytes
    after: float | None = None


@record
class Recording:
    """One request and its answer. `number` counts requests from 1."""

    number: int
    request: Canonical
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: tuple[Chunk, ...] = ()
    end: End = "whole"
    why: str = ""
    failure: str = "connect"
    """The kind of failure, where there was no answer."""


@record
class Cassette:
    """A whole recording, in the order in which the requests were made."""

    path: Path
    header: Header
    recordings: tuple[Recording, ...]
    requests: int = 0
    """How many requests were made; the answers of some may be missing."""
    missing: tuple[str, ...] = ()
    """What could not be read, with its line."""


class TapeWriter:
    """Turns recordings into lines; remembers earlier ones, to write only what is new."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[str, list[str]]] = {}

    def header(self, header: Header) -> str:
        """The first line."""
        names = {name: getattr(header, name) for name in ("provider", "base_url", "model", "note")}
        return _line({"handrail_cassette": VERSION, **names})

    def recording(self, recording: Recording) -> str:
        """The lines of one recording."""
        request = recording.request
        head, messages = digest(request.head), [digest(message) for message in request.messages]
        like, keep = self._nearest(messages)
        first: dict[str, Any] = {"request": recording.number, "api": request.api}
        if like:
            first |= {"like": like, "keep": keep}
        if not like or self._written[like][0] != head:
            first["head"] = request.head
        self._written[recording.number] = (head, messages)
        lines: list[dict[str, Any]] = [first, *({"message": each} for each in request.messages[keep:])]
        if recording.end == "failed":
            lines.append({"failed": recording.failure, "why": recording.why})
        else:
            lines.append({"answer": recording.status, "headers": dict(recording.headers)})
            lines += map(_chunk, recording.chunks)
            lines.append({"end": recording.end, **({"why": recording.why} if recording.why else {})})
        return "".join(map(_line, lines))

    def _nearest(self, messages: Sequence[str]) -> tuple[int, int]:
        """The newest recording with the longest common prefix, and the length of that."""
        best, longest = 0, -1
        for number, (_, others) in self._written.items():
            pairs = zip(messages, others, strict=False)
            same = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(messages), len(others)))
            if same >= longest:
                best, longest = number, same
        return best, max(longest, 0)


def load(path: Path, *, salvage: bool = False) -> Cassette:
    """
    Read a cassette. Raises CassetteError if there is no such file, or it is no cassette, or its format is newer.

    A last recording that was cut off by a crash is left out. Other damage is an error too; with `salvage` it is left
    out and told in `missing`.
    """
    records = _records(path, _read_lines(path, salvage=salvage), salvage=salvage)
    header = _header(path, next(records, (1, {}))[1])
    recordings: dict[int, Recording] = {}
    missing: list[str] = []
    requests, whole = 0, True
    for group in _groups(records):
        number, first = group[0]
        requests += 1
        try:
            recording = _recording([each for _, each in group], recordings)
        except (KeyError, TypeError, ValueError) as error:
            if not salvage:
                raise CassetteError(
                    f"{path}:{number}: the recording {first.get('request')!r} is damaged: {error!r}. Record it again."
                ) from error
            recording = None
        if recording is not None:
            recordings[recording.number] = recording
        elif first or whole:  # else it is the rest of a recording that was named just before
            missing.append(_loss(group, recordings))
        whole = recording is not None
    return Cassette(path, header, tuple(recordings[number] for number in sorted(recordings)), requests, (*missing,))


def _read_lines(path: Path, *, salvage: bool) -> list[str]:
    """The lines of a file; bytes of half a character at its end are left out."""
    try:
        size = path.stat().st_size
        if size > MAX_SIZE:
            raise CassetteError(
                f"{path} is {size:,} bytes; cassettes may have up to {MAX_SIZE:,}. Record a shorter run."
            )
        # a byte that is escaped makes its line one that is not JSON
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace" if salvage else "strict")
        return decoder.decode(path.read_bytes()).replace("\r\n", "\n").split("\n")
    except OSError as error:
        raise CassetteError(
            f"The cassette {str(path)!r} cannot be read: {error.strerror}. Record it first, with --record."
        ) from error
    except UnicodeDecodeError as error:
        raise CassetteError(
            f"{path} is not a cassette: it is not UTF-8 text. Give a file that --record wrote."
        ) from error


def _loss(group: Sequence[tuple[int, Mapping[str, Any]]], recordings: Mapping[int, Recording]) -> str:
    """What is missing where these lines are no recording."""
    (start, first), (last, _) = group[0], group[-1]
    number, like = first.get("request"), first.get("like")
    if number is None:
        return f"line {start} cannot be read, and what follows it up to the next recording is left out"
    if like is not None and like not in recordings:
        return f"line {start}: recording {number} continues recording {like}, which is missing"
    return f"line {last}: recording {number} breaks off"


def check_replaceable(path: Path) -> None:
    """Raise CassetteError if a recording would replace a file that is not a cassette."""
    try:
        with path.open("rb") as file:
            first = file.read(MAX_FIRST_LINE)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CassetteError(
            f"The cassette {str(path)!r} cannot be written: {error.strerror}. Choose another file."
        ) from error
    if first and b'"handrail_cassette"' not in first.partition(b"\n")[0]:
        raise CassetteError(f"{str(path)!r} exists and is not a cassette. Record to another file.")


def _records(path: Path, lines: Sequence[str], *, salvage: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines with their numbers; with `salvage`, one that cannot be read is empty."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            if salvage:
                yield number, {}
                continue
            if number == len(lines):  # the last line has no end: a crash cut it off
                return
            raise CassetteError(f"{path}:{number}: not JSON: {error}. Give a file that --record wrote.") from error
        if isinstance(record, dict):
            yield number, record
        elif salvage:
            yield number, {}
        else:
            raise CassetteError(
                f"{path}:{number}: {line[:60]!r} is not a JSON object. Give a file that --record wrote."
            )


def _header(path: Path, record: Mapping[str, Any]) -> Header:
    version = record.get("handrail_cassette")
    if not isinstance(version, int) or version < 1:
        raise CassetteError(
            f"{path} is not a cassette: its first line does not say handrail_cassette. Give a file that --record wrote."
        )
    if version > VERSION:
        raise CassetteError(
            f"{path} has format {version}, and this handrail reads formats up to {VERSION}. Update handrail."
        )
    return Header(*(str(record.get(name, "")) for name in ("provider", "base_url", "model", "note")))


def _groups(records: Iterable[tuple[int, dict[str, Any]]]) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    group: list[tuple[int, dict[str, Any]]] = []
    for number, line in records:
        if group and ("request" in line or not line):
            yield group
            group = []
        group.append((number, line))
    if group:
        yield group


def _recording(records: Sequence[Mapping[str, Any]], earlier: Mapping[int, Recording]) -> Recording | None:
    """The recording in these lines; None if it has no end."""
    first = records[0]
    like = earlier[first["like"]].request if "like" in first else None
    messages = [*like.messages[: first["keep"]]] if like else []
    messages += (record["message"] for record in records if "message" in record)
    head = first["head"] if "head" in first or like is None else like.head
    request = Canonical(first["api"], head, tuple(messages))
    number = int(first["request"])
    answer = next((record for record in records if "answer" in record), None)
    last = records[-1]
    if "failed" in last:
        return Recording(number, request, end="failed", why=last["why"], failure=last["failed"])
    if answer is None or "end" not in last:
        return None
    chunks = tuple(_bytes(record) for record in records if "chunk" in record or "base64" in record)
    end = cast("End", last["end"])
    return Recording(number, request, answer["answer"], answer["headers"], chunks, end, last.get("why", ""))


def _chunk(chunk: Chunk) -> dict[str, Any]:
    try:
        record: dict[str, Any] = {"chunk": chunk.data.decode("utf-8")}
    except UnicodeDecodeError:
        record = {"base64": base64.b64encode(chunk.data).decode("ascii")}
    return record if chunk.after is None else record | {"after": round(chunk.after, 4)}


def _bytes(record: Mapping[str, Any]) -> Chunk:
    data = record["chunk"].encode() if "chunk" in record else base64.b64decode(record["base64"], validate=True)
    return Chunk(data, record.get("after"))


def _line(record: Mapping[str, Any]) -> str:
    # lone surrogates cannot be written as UTF-8; escaped they can
    text = json.dumps(record, ensure_ascii=False)
    return (text if text.isprintable() else json.dumps(record)) + "\n"
