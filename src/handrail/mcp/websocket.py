"""An MCP server over a WebSocket (RFC 6455): one text frame per message."""

import asyncio
import base64
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

from handrail.errors import McpError
from handrail.http.client import HttpResponse
from handrail.http.http1 import SWITCHED
from handrail.mcp.endpoint import ServerEndpoint
from handrail.mcp.messages import Message, read_message
from handrail.mcp.pace import MessagePace
from handrail.mcp.peer import Peer

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PROTOCOL = "mcp"
MAX_MESSAGE = 32 * 1024 * 1024
MAX_UNREAD = 1024 * 1024
READ_SIZE = 256 * 1024
CLOSE_SECONDS = 0.5
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def frame(kind: int, payload: bytes, mask: bytes) -> bytes:
    """One whole frame of a client, which has to be masked."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | kind, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, 0x80 | 127)) + size.to_bytes(8, "big")
    return head + mask + apply_mask(payload, mask)


def apply_mask(payload: bytes, mask: bytes) -> bytes:
    """The payload with the mask laid over it; twice gives the payload again."""
    size = len(payload)
    pattern = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(pattern, "big")).to_bytes(size, "big")


class FrameReader:
    """Turns the bytes of a server into (kind, payload) pairs of whole messages, wherever the bytes are split."""

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._parts: list[bytes] = []
        self._size = 0
        self._kind = CONTINUATION

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The messages that the bytes complete; raises ValueError if they are not frames, or a message is too large."""
        self._rest += data
        while (found := self._frame()) is not None:
            final, kind, payload = found
            if kind >= CLOSE:
                if not final or len(payload) > 125:
                    raise ValueError("a control frame is too large")
                yield kind, payload
                continue
            if (kind == CONTINUATION) != bool(self._parts):
                raise ValueError("a message begins inside another, or goes on without a beginning")
            self._kind = kind or self._kind
            self._size += len(payload)
            if self._size > self._limit:
                raise ValueError(f"a message has more than {self._limit:,} bytes")
            self._parts.append(payload)
            if final:
                whole, self._parts, self._size = b"".join(self._parts), [], 0
                yield self._kind, whole

    def _frame(self) -> tuple[bool, int, bytes] | None:
        data = self._rest
        if len(data) < 2:
            return None
        first, second = data[0], data[1]
        if first & 0x70 or second & 0x80:
            raise ValueError("a frame has reserved bits, or is masked")
        size, begin = second & 0x7F, 2
        if size >= 126:
            begin = 4 if size == 126 else 10
            if len(data) < begin:
                return None
            size = int.from_bytes(data[2:begin], "big")
        if size > self._limit:
            raise ValueError(f"a message has more than {self._limit:,} bytes")
        if len(data) < begin + size:
            return None
        payload = bytes(data[begin : begin + size])
        del data[: begin + size]
        return bool(first & 0x80), first & 0x0F, payload


class WebSocketWire:
    """One server behind one socket."""

    def __init__(self, peer: Peer, response: HttpResponse) -> None:
        self._peer = peer
        self._response = response
        self._reader, self._writer, self._ahead = response.take_over()
        self._frames = FrameReader()
        self._task = asyncio.create_task(self._read())
        peer.attach(self)

    @classmethod
    async def open(cls, peer: Peer, endpoint: ServerEndpoint) -> "WebSocketWire":
        """Open the socket; raises McpError if the server does not agree."""
        key = base64.b64encode(os.urandom(16))
        headers = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": key.decode(),
            "sec-websocket-protocol": PROTOCOL,
        }
        response = await endpoint.send("GET", headers)
        due = base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest()).decode()
        if response.status != SWITCHED or response.headers.get("sec-websocket-accept") != due:
            response.abort()
            raise McpError(f"The MCP server {peer.name!r} does not speak WebSocket at {endpoint.url!r}.")
        return cls(peer, response)

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        try:
            self._write(TEXT, json.dumps(message, separators=(",", ":")).encode())
            await self._writer.drain()
        except OSError as error:
            self._peer.end(f"the connection broke off: {error}")
            raise McpError(f"The MCP server {self._peer.name!r} cannot be reached: {error}.") from error

    def post(self, message: Message) -> None:
        if self._writer.transport.get_write_buffer_size() < MAX_UNREAD:
            self._write(TEXT, json.dumps(message, separators=(",", ":")).encode())

    async def open_stream(self) -> None:
        """It is open."""

    async def aclose(self) -> None:
        self._write(CLOSE, b"\x03\xe8")
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._writer.drain()
        self._task.cancel()
        await asyncio.wait({self._task})
        self._response.abort()

    def _write(self, kind: int, payload: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(frame(kind, payload, os.urandom(4)))

    async def _read(self) -> None:
        pace = MessagePace()
        try:
            data = self._ahead or await self._reader.read(READ_SIZE)
            while data:
                for kind, payload in self._frames.feed(data):
                    if kind == CLOSE:
                        self._peer.end("it closed the connection")
                        return
                    self._take(kind, payload)
                    await pace.keep()
                data = await self._reader.read(READ_SIZE)
            self._peer.end("the connection broke off")
        except (ValueError, OSError, McpError) as error:
            self._peer.end(f"the connection broke off: {error}")

    def _take(self, kind: int, payload: bytes) -> None:
        if kind == PING:
            if self._writer.transport.get_write_buffer_size() < MAX_UNREAD:
                self._write(PONG, payload)
        elif kind in (TEXT, BINARY):
            with suppress(ValueError):
                self._peer.receive(read_message(payload))
