"""
The protocol of what sends requests: the HTTP client, or a recording.

Header names are lower case on both sides.
"""

from collections.abc import Mapping
from typing import Protocol

from handrail.records import record


@record
class HttpRequest:
    """A request that is sent in one piece."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    method: str = "POST"


class Response(Protocol):
    """An answer that is arriving."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """The next bytes; empty at the end. Raises TransportError."""
        ...

    def abort(self) -> None:
        """Drop the connection at once if the answer is incomplete. Never waits, may be called twice."""
        ...

    def leave(self) -> None:
        """Everything that matters was read; the connection may be kept. Never waits."""
        ...


class Transport(Protocol):
    """Sends requests."""

    async def send(self, request: HttpRequest, /) -> Response:
        """The answer, once its head has arrived. Raises TransportError. Cancelling drops the connection."""
        ...

    async def aclose(self) -> None:
        """Close idle connections."""
        ...
