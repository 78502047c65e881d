"""
The recording transport: passes everything through and records it.

    send -> read* -> b""       whole
                  -> leave     whole: everything that matters was read
                  -> abort     aborted
                  -> error     cut
    send -> error              failed

A first recording goes to the target, so that tools that list the folder see the same as in a replay. If there is an
old cassette, a hidden file beside it is written, which replaces it when the transport is closed: a crash leaves the old
cassette as it was, and what was recorded so far in the hidden file. A recording that ended badly does not replace one
that is there: it is put beside it, as NAME.failed.jsonl.
"""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from handrail.conversation.redact import apply_edits
from handrail.errors import CassetteError, TransportError
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest, Response, Transport
from handrail.providers.cassette.canonical import Canonical, api_of, canonical
from handrail.providers.cassette.normalize import Normalizer
from handrail.providers.cassette.replay import log_warning
from handrail.providers.cassette.scrub import scrub
from handrail.providers.cassette.tape import Chunk, End, Header, Recording, TapeWriter, check_replaceable
from handrail.providers.choose import load_api

KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")


class Recorder:
    """
    Records what goes through `inner` to `path`.

    `timed` keeps the time between chunks; without it a second recording of the same answers is the same file.
    `on_warning` is told when a recording was put aside.

    Raises:
        CassetteError: the file cannot be written, or is there and is not a cassette.
    """

    is_tape = True

    def __init__(
        self,
        inner: Transport,
        path: Path,
        normalizer: Normalizer,
        *,
        timed: bool = False,
        on_warning: Callable[[str], None] = log_warning,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._inner = inner
        self._normalizer = normalizer
        self._timed = timed
        self._on_warning = on_warning
        self._has_failed = False
        self._ended_well = False
        self._clock = clock
        self._writer = TapeWriter()
        self._count = 0
        self._has_header = False
        is_first = not os.path.lexists(path)
        self._part = path if is_first else path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
        check_replaceable(path)
        try:
            self._file = open(self._part, "xb", opener=_owner_only)  # noqa: SIM115  # open as long as the recorder
        except FileNotFoundError as error:
            raise CassetteError(
                f"The cassette {str(path)!r} cannot be written: there is no folder {str(path.parent)!r}. Make it first."
            ) from error
        except OSError as error:
            raise CassetteError(
                f"The cassette {str(path)!r} cannot be written: {error.strerror}. Choose another file."
            ) from error

    async def send(self, outgoing: HttpRequest) -> "RecordingReply":
        """The answer, recorded while it is read."""
        if self._file.closed:
            raise CassetteError(
                f"The recording of {str(self.path)!r} is closed. Open another recorder for more requests."
            )
        self._count += 1
        number = self._count
        request = canonical(outgoing, self._normalizer)
        if not self._has_header:
            self._has_header = True
            self._write(self._writer.header(_header(outgoing, request)))
        started = self._clock()
        try:
            reply = await self._inner.send(outgoing)
        except TransportError as error:
            self._ended_well = False
            why = self._clean(str(error))
            self._write(self._writer.recording(Recording(number, request, end="failed", why=why, failure=error.kind)))
            raise
        return RecordingReply(self, reply, number, request, started)

    async def aclose(self) -> None:
        """Close connections and replace the old cassette by the recording, unless that ended badly."""
        await self._inner.aclose()
        if self._ended_well and not self._has_failed:
            self.finish()
        else:
            self._put_aside()

    def mark_failed(self) -> None:
        """What is recorded came to no good end, whatever the last answer was."""
        self._has_failed = True

    def _put_aside(self) -> None:
        if self._file.closed:
            return
        if not self._count:
            self.discard()
            self._on_warning(f"The model was not asked, so nothing was recorded to {str(self.path)!r}.")
            return
        if self._part == self.path or not self.path.exists():
            self.finish()
            self._on_warning(f"The run failed, and a replay of {str(self.path)!r} will fail too. Record it again.")
            return
        aside = self.path.with_name(f"{self.path.stem}.failed{self.path.suffix}")
        self._close_file()
        self._part.replace(aside)
        self._on_warning(
            f"The run failed, so the cassette {str(self.path)!r} was not replaced. This recording is in {str(aside)!r}."
        )

    def finish(self) -> None:
        """Replace the old cassette by the recording, without answers that are still arriving."""
        if self._file.closed:
            return
        if not self._has_header:
            self._write(self._writer.header(Header()))
        self._close_file()
        self._part.replace(self.path)

    def _close_file(self) -> None:
        os.fsync(self._file.fileno())
        self._file.close()

    def discard(self) -> None:
        """Delete the recording; the old cassette stays."""
        if not self._file.closed:
            self._file.close()
            self._part.unlink(missing_ok=True)

    def now(self) -> float:
        """The recorder's clock."""
        return self._clock()

    def add(self, reply: "RecordingReply", end: End, why: str = "") -> None:
        """Record one answer."""
        if self._file.closed:
            return
        pieces = [piece for piece, _ in reply.pieces]
        clean = scrub(pieces, self._normalizer.edits)
        times: list[float | None] = [after for _, after in reply.pieces] if self._timed else []
        # there can only be fewer chunks, where boundaries coincided
        times = times[: len(clean)] if times else [None] * len(clean)
        headers = {name: reply.headers[name] for name in KEPT_HEADERS if name in reply.headers}
        chunks = tuple(Chunk(data, after) for data, after in zip(clean, times, strict=True))
        request, why = reply.request, self._clean(why)
        self._ended_well = end == "whole" and 200 <= reply.status < 300
        self._write(self._writer.recording(Recording(reply.number, request, reply.status, headers, chunks, end, why)))

    def _clean(self, text: str) -> str:
        return apply_edits(text, self._normalizer.edits(text))

    def _write(self, text: str) -> None:
        self._file.write(text.encode())
        self._file.flush()


class RecordingReply:
    """An answer that is recorded while it is read."""

    def __init__(self, recorder: Recorder, inner: Response, number: int, request: Canonical, started: float) -> None:
        self._recorder = recorder
        self._inner = inner
        self._last = started
        self._done = False
        self.number = number
        self.request = request
        self.pieces: list[tuple[bytes, float]] = []

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def read(self) -> bytes:
        try:
            data = await self._inner.read()
        except TransportError as error:
            self._end("cut", str(error))
            raise
        if not data:
            self._end("whole")
            return data
        now = self._recorder.now()
        self.pieces.append((data, now - self._last))
        self._last = now
        return data

    def abort(self) -> None:
        """Drop the connection; what has arrived is recorded."""
        self._inner.abort()
        self._end("aborted")

    def leave(self) -> None:
        self._inner.leave()
        self._end("whole")

    def _end(self, end: End, why: str = "") -> None:
        if not self._done:
            self._done = True
            self._recorder.add(self, end, why)


def _header(outgoing: HttpRequest, request: Canonical) -> Header:
    provider = api_of(outgoing.url)
    parts = urlsplit(outgoing.url)
    host = parts.netloc.rpartition("@")[2]
    path = parts.path
    if provider in {"anthropic", "openai", "openai-responses"}:
        path = path.removesuffix(load_api(provider).path)  # type: ignore[arg-type]  # one of the three, as just seen
    return Header(provider, f"{parts.scheme}://{host}{path}", str(request.head.get("model", "")))


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def open_recorder(
    path: Path, normalizer: Normalizer, env: Mapping[str, str], on_warning: Callable[[str], None] = log_warning
) -> Recorder:
    """A transport that records what a model answers, with its timing."""
    return Recorder(HttpClient(env), path, normalizer, timed=True, on_warning=on_warning)
