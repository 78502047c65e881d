"""
HTTP/1.1 as bytes: the head of a request out, the answer in. Nothing here waits, connects or sends.

    request_head("GET", b"/", b"example.com", headers, None)
    reader = ResponseReader("GET", headers)
    reader.receive(data)        as often as bytes arrive; b"" = the server closed the connection
    reader.take()               the body so far

        head (1xx)* -> nothing | by length | chunks, trailers | until the connection is closed -> end
                    -> 101, or 2xx to CONNECT: what follows is not HTTP

What two readers could understand differently is refused. What many servers do is not: lines that end with LF alone in a
head, no reason after a status, a header over several lines, blanks after the size of a chunk.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from handrail.errors import HttpProtocolError

MAX_HEAD = 256 * 1024
MAX_CHUNK_LINE = 16 * 1024
SWITCHED = 101
_OWN = frozenset({"host", "content-length", "transfer-encoding"})
_FRAMING = frozenset({"connection", "content-length", "transfer-encoding"})

_TEXT = r"[^\x00\n\v\f\r]*"
_FIELD = re.compile(rf"(?m)^([-!#$%&'*+.^_`|~0-9A-Za-z]+):({_TEXT})\r?\n")
_STATUS = re.compile(rf"HTTP/([0-9]\.[0-9]) ([1-9][0-9]{{2}})(?: {_TEXT})?\r?\n")
_BLANK_LINE = re.compile(rb"\n\r?\n")
_CHUNK = re.compile(rb"\r\n([0-9A-Fa-f]{1,20})(?:[ \t]*|;[^\x00\r\n]*)\r\n")
"""A chunk begins with the end of the one before it."""


def request_head(
    method: str, target: bytes, host: bytes, headers: Sequence[tuple[str, str]], length: int | None
) -> bytes:
    """
    The head of a request whose body has this length; None = it has no body.

    Raises HttpProtocolError if a part of it would not stay in its place, or if a header says again where the body ends.
    """
    path = target.decode("latin-1")
    if not (method.isascii() and method.isalpha() and path.isascii() and path.isprintable()) or path.split() != [path]:
        raise HttpProtocolError(f"the method {method!r} or the target {target!r} cannot be sent")
    own = [("host", host.decode("latin-1"))]
    if length is not None:
        own.append(("content-length", str(length)))
    lines = [f"{method} {path} HTTP/1.1\r\n"]
    for name, value in (*own, *headers):
        line = f"{name}: {value}\r\n"
        if ":" in name or not _FIELD.fullmatch(line) or value.strip(" \t") != value:
            raise HttpProtocolError(f"the header {name!r} cannot be sent: its name or value has a wrong character")
        lines.append(line)
    if wrong := [name for name, _ in headers if name.lower() in _OWN]:
        raise HttpProtocolError(f"the header {wrong[0]!r} cannot be sent: it follows from the request")
    lines.append("\r\n")
    try:
        return "".join(lines).encode()
    except UnicodeEncodeError as error:
        raise HttpProtocolError("a header cannot be sent: it has half a character") from error


class ResponseReader:
    """
    Reads the answer to a request with this method and these headers.

    `status` is 0 until the head is complete, `done` says that the body is. `excess` is what came after the end, or
    after a switch to another protocol.
    """

    __slots__ = (
        "_failure", "_keep_alive", "_left", "_method", "_part", "_pieces", "_read", "_upgrade",
        "done", "excess", "headers", "status",
    )  # fmt: skip

    def __init__(self, method: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        asked = {name.lower(): value for name, value in headers}
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.done = False
        self.excess = b""
        self._method = method
        self._upgrade = "upgrade" in asked
        self._keep_alive = "close" not in _words(asked.get("connection", ""))
        self._read: Callable[[ResponseReader, bytes], bytes] = ResponseReader._head
        self._part = b""
        self._left = 0
        self._pieces: list[bytes] = []
        self._failure: HttpProtocolError | None = None

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow: the answer ended where both sides know it, and neither wants to close."""
        return self.done and self._keep_alive and not self.excess

    def receive(self, data: bytes) -> None:
        """Read more bytes; none = the server closed the connection. Raises HttpProtocolError, but see `take`."""
        try:
            if self._failure is not None:
                raise self._failure
            if not data:
                self._close()
            while data:
                data = self._read(self, data)
        except HttpProtocolError as error:
            self._failure = error
            if not self._pieces:
                raise

    def take(self) -> bytes:
        """The body that was not taken yet. If there is none because the answer is broken, raises HttpProtocolError."""
        pieces = self._pieces
        if not pieces:
            if self._failure is not None:
                raise self._failure
            return b""
        self._pieces = []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # the states: each reads what belongs to it and returns the rest

    def _head(self, data: bytes) -> bytes:
        data, lines = self._block(data)
        if not b"HTTP/".startswith((lines or self._part)[:5]):
            raise HttpProtocolError(f"the server does not speak HTTP/1.1: it said {(lines or self._part)[:40]!r}")
        if not lines:
            return b""
        text = lines.decode("latin-1")
        line = _STATUS.match(text)
        if line is None:
            raise HttpProtocolError(f"illegal status line: {text[:80]!r}")
        status = int(line[2])
        headers = _headers(text[line.end() :])
        if status >= 200 or (status == SWITCHED and self._upgrade):
            self.status, self.headers = status, headers
            if line[1] < "1.1" or "close" in _words(headers.get("connection", "")):
                self._keep_alive = False
            self._begin_body()
        elif status == SWITCHED:
            raise HttpProtocolError("the server switched to a protocol that was not asked for")
        return data

    def _begin_body(self) -> None:
        status, headers = self.status, self.headers
        switched = status == SWITCHED or (self._method == "CONNECT" and status < 300)
        if switched or status in (204, 304) or self._method == "HEAD":
            self._end()
            if switched:
                self._keep_alive = False
        elif "transfer-encoding" in headers:
            self._read = ResponseReader._chunks
            self._part = b"\r\n"
        elif "content-length" in headers:
            self._read = ResponseReader._by_length
            self._left = int(headers["content-length"])
            if not self._left:
                self._end()
        else:
            self._read = ResponseReader._rest
            self._keep_alive = False

    def _by_length(self, data: bytes) -> bytes:
        piece = data[: self._left]
        self._pieces.append(piece)
        self._left -= len(piece)
        if not self._left:
            self._end()
        return data[len(piece) :]

    def _chunks(self, data: bytes) -> bytes:
        data = self._part + data
        at, left, size = 0, self._left, len(data)
        self._left, self._part = 0, b""
        while True:
            if left:
                if at < size:
                    self._pieces.append(data[at : at + left])
                at += left
                if at > size:
                    self._left = at - size
                    return b""
            line = _CHUNK.match(data, at)
            if line is None:
                self._part = _start_of_chunk_line(data[at:])
                return b""
            at, left = line.end(), int(line[1], 16)
            if not left:
                self._read = ResponseReader._trailers
                return data[at - 1 :]  # from the line end on, which a blank line may follow

    def _trailers(self, data: bytes) -> bytes:
        data, lines = self._block(data)
        if lines:
            _headers(lines[1:].decode("latin-1"))
            self._end()
        return data

    def _rest(self, data: bytes) -> bytes:
        self._pieces.append(data)
        return b""

    def _excess(self, data: bytes) -> bytes:
        self.excess += data
        return b""

    def _block(self, data: bytes) -> tuple[bytes, bytes]:
        """What follows a blank line, and the lines before it; nothing and nothing if it has not come."""
        known = max(len(self._part) - 2, 0)
        data = self._part + data
        blank = _BLANK_LINE.search(data, known)
        if (len(data) if blank is None else blank.end()) > MAX_HEAD:
            raise HttpProtocolError(f"the headers are over {MAX_HEAD} bytes")
        if blank is None:
            self._part = data
            return b"", b""
        self._part = b""
        return data[blank.end() :], data[: blank.start() + 1]

    def _end(self) -> None:
        self.done = True
        self._read = ResponseReader._excess

    def _close(self) -> None:
        if self._read is ResponseReader._rest:
            self._end()
        elif not self.done:
            where = "before the end of its answer" if self.status or self._part else "without an answer"
            raise HttpProtocolError(f"the server closed the connection {where}")
        self._keep_alive = False


def _headers(text: str) -> dict[str, str]:
    """The headers in these lines, with lower-case names; of several with one name the last."""
    if "\n " in text or "\n\t" in text:
        text = re.sub(r"\r?\n[ \t]+", " ", text)
    parts = _FIELD.split(text)  # what is between the headers, name, value, what is between, ...
    if wrong := "".join(parts[::3]):
        raise HttpProtocolError(f"illegal header line: {wrong[:80]!r}")
    headers: dict[str, str] = {}
    for name, text in zip(map(str.lower, parts[1::3]), parts[2::3], strict=True):
        value = text.strip(" \t")
        headers[name] = _framing_value(name, value, headers.get(name)) if name in _FRAMING else value
    if "content-length" in headers and "transfer-encoding" in headers:
        raise HttpProtocolError("the answer has both a content-length and a transfer coding")
    return headers


def _framing_value(name: str, value: str, before: str | None) -> str:
    """A header that says where an answer ends, or a connection; `before` is what it said before."""
    if name == "connection":
        return "close" if before == "close" or "close" in _words(value) else value
    if name == "transfer-encoding":
        if before is not None or value.lower() != "chunked":
            raise HttpProtocolError(f"the transfer coding {value[:80]!r} is not supported: only one, 'chunked', is")
        return "chunked"
    lengths = set(_words(value if before is None else f"{before},{value}"))
    length = lengths.pop()
    if lengths or not length.isascii() or not length.isdecimal() or len(length) > 20:
        raise HttpProtocolError(f"bad content-length: {value[:80]!r}")
    return length


def _words(value: str) -> list[str]:
    return [word.strip(" \t") for word in value.lower().split(",")]


def _start_of_chunk_line(line: bytes) -> bytes:
    """The beginning of a chunk's line, if it can still become one."""
    if not b"\r\n".startswith(line[:2]) or b"\n" in line[2:] or len(line) > MAX_CHUNK_LINE:
        raise HttpProtocolError(f"illegal chunk header: {line[:80]!r}")
    return line
