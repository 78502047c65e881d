"""An MCP server of the first HTTP transport (2024-11-05): one stream of events, and an address for our messages."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin

from handrail.errors import EventTooLargeError, McpError, TransportError, UrlError
from handrail.http.client import HttpResponse
from handrail.http.sse import EventReader
from handrail.http.urls import parse_target
from handrail.mcp.endpoint import ServerEndpoint
from handrail.mcp.messages import Message, read_message, shown_text
from handrail.mcp.pace import MessagePace
from handrail.mcp.peer import Peer
from handrail.mcp.streamable_http import MAX_POSTS


class SseWire:
    """One server: its stream, and where messages to it go."""

    def __init__(self, peer: Peer, endpoint: ServerEndpoint) -> None:
        self._peer = peer
        self._endpoint = endpoint
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Open the stream and learn the address; raises McpError if that is not to be had."""
        response = await self._endpoint.send("GET", {"accept": "text/event-stream"})
        self._start(self._read(response))
        done, _ = await asyncio.wait({self._address, self._peer.ended}, return_when=asyncio.FIRST_COMPLETED)
        if self._address not in done:
            raise McpError(f"The MCP server {self._peer.name!r} cannot be used: {self._peer.ended.result()}.")
        self._peer.attach(self)

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        body = json.dumps(message, separators=(",", ":")).encode()
        own = {"content-type": "application/json", **headers}
        (await self._endpoint.send("POST", own, body, self._address.result())).abort()

    def post(self, message: Message) -> None:
        if len(self._tasks) < MAX_POSTS:
            self._start(self._send_quietly(message))

    async def open_stream(self) -> None:
        """It is open."""

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._endpoint.aclose()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_quietly(self, message: Message) -> None:
        with suppress(McpError):
            await self.send(message, self._peer.dialect.headers("", {}))

    async def _read(self, response: HttpResponse) -> None:
        reader, pace = EventReader(), MessagePace()
        try:
            while data := await response.read():
                for name, text in reader.feed(data):
                    self._take_event(name, text)
                    await pace.keep()
            self._peer.end("it ended its stream")
        except (TransportError, EventTooLargeError, McpError) as error:
            self._peer.end(str(error))
        finally:
            response.abort()

    def _take_event(self, name: str, text: str) -> None:
        if name == "endpoint":
            self._take_address(text.strip())
        elif name in ("", "message"):
            with suppress(ValueError):
                self._peer.receive(read_message(text))

    def _take_address(self, text: str) -> None:
        address = urljoin(self._endpoint.url, text)
        try:
            inside = parse_target(address).origin == parse_target(self._endpoint.url).origin
        except UrlError:
            inside = False
        if not inside:
            self._peer.end(f"it wants messages to go to {shown_text(address)[:200]!r}, which is another server")
        elif not self._address.done():
            self._address.set_result(address)
