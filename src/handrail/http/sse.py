"""Server-sent events: bytes in, events out, wherever the bytes are split."""

from handrail.errors import EventTooLargeError

MAX_EVENT = 32 * 1024 * 1024
BOM = "\ufeff"


class EventReader:
    """
    Turns the bytes of an event stream into (event name, data) pairs.

    Accepts LF, CRLF and CR, comments, several data lines, a BOM, and any split of the bytes. `last_id` and `retry_ms`
    are what the stream said last about its resumption.
    """

    __slots__ = (
        "_after_cr", "_data", "_data_size", "_first", "_limit", "_name", "_rest", "_rest_size", "last_id", "retry_ms"
    )  # fmt: skip

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._rest: list[bytes] = []  # the unfinished line, in pieces: joining at every feed would be quadratic
        self._rest_size = 0
        self._after_cr = False
        self._first = True
        self._name = ""
        self._data: list[str] = []
        self._data_size = 0
        self.last_id = ""
        self.retry_ms: int | None = None

    def feed(self, chunk: bytes) -> list[tuple[str, str]]:
        """The events that `chunk` completes."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == 0x0A:  # the LF of a CRLF that was split
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_cr = chunk[-1] == 0x0D
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = chunk.rfind(b"\n")
        if end < 0:
            self._keep(chunk)
            return []
        # only whole lines are decoded, so a split inside a character does no harm
        lines = chunk[:end]
        if self._rest:
            lines = b"".join((*self._rest, lines))
            self._rest.clear()
            self._rest_size = 0
        if end + 1 < len(chunk):
            self._keep(chunk[end + 1 :])
        return self._lines(lines.decode("utf-8", "replace"))

    def end(self) -> list[tuple[str, str]]:
        """The last event, if the final line end is missing. A cut event shows as broken JSON later."""
        lines = b"".join(self._rest).decode("utf-8", "replace")
        self._rest.clear()
        self._rest_size = 0
        return self._lines(lines + "\n")

    def _keep(self, piece: bytes) -> None:
        self._rest_size += len(piece)
        if self._rest_size > self._limit:
            self._rest.clear()
            raise EventTooLargeError(f"a line of the event stream is over {self._limit} bytes")
        self._rest.append(piece)

    def _lines(self, text: str) -> list[tuple[str, str]]:
        if self._first:
            self._first = False
            text = text.removeprefix(BOM)
        events: list[tuple[str, str]] = []
        data = self._data
        for line in text.split("\n"):
            if line[:6] == "data: ":
                self._add(line[6:])
            elif not line:
                if data:
                    events.append((self._name, data[0] if len(data) == 1 else "\n".join(data)))
                    data.clear()
                    self._data_size = 0
                self._name = ""
            elif line[:7] == "event: ":
                self._name = line[7:]
            else:
                self._rare(line)
        return events

    def _add(self, value: str) -> None:
        self._data_size += len(value)
        if self._data_size > self._limit:
            self._data.clear()
            raise EventTooLargeError(f"an event of the stream is over {self._limit} characters")
        self._data.append(value)

    def _rare(self, line: str) -> None:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._add(value)
        elif field == "event":
            self._name = value
        elif field == "id" and "\0" not in value:
            self.last_id = value
        elif field == "retry" and value.isdecimal():
            self.retry_ms = int(value[:9])
