"""
Where the wire ends: what sends a request and yields the bytes of its answer.

The HTTP client implements this, and so does a recorded answer: `Recorded` yields byte chunks without a socket.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from handrail.records import record


@record
class Outgoing:
    """A POST. Header names are lower case."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class TransportError(Exception):
    """The bytes could not be sent or the answer broke off. `kind` is `connect` (nothing was answered) or `cut`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Reply(Protocol):
    """An answer that is arriving. Header names are lower case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """The next bytes; empty at the end. Raises TransportError."""
        ...

    def abort(self) -> None:
        """Drop the connection at once if the answer is not whole yet. Never waits, may be called twice."""
        ...

    def leave(self) -> None:
        """All that matters of the answer was read; the connection may be kept. Never waits."""
        ...


class Transport(Protocol):
    """Sends requests."""

    async def send(self, outgoing: Outgoing) -> Reply:
        """The answer, once its head is here. Raises TransportError. Cancelling drops the connection."""
        ...

    async def aclose(self) -> None:
        """Close idle connections."""
        ...


@dataclass(slots=True)
class Recorded:
    """An answer from memory, in the chunks it once came in."""

    chunks: Iterable[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chunks = iter(self.chunks)

    async def read(self) -> bytes:
        """The next recorded chunk."""
        return next((chunk for chunk in self.chunks if chunk), b"")

    def abort(self) -> None:
        """Nothing to drop."""

    def leave(self) -> None:
        """Nothing to keep."""
