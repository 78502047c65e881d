"""
An MCP server over HTTP: each message is a POST, and answers come as JSON or as a stream of events.

Before 2026-07-28 there is a session: the server names it in a header, streams that break off are resumed at the last
event, and what the server says by itself comes on a stream of its own (GET).
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from handrail.errors import (
    EventTooLargeError,
    HttpStatusError,
    McpError,
    SessionLostError,
    TransportError,
    UnreachableError,
)
from handrail.http.client import HttpResponse
from handrail.http.sse import EventReader
from handrail.mcp.dialect import UNSUPPORTED_VERSION, Dialect
from handrail.mcp.endpoint import ServerEndpoint, read_bounded
from handrail.mcp.messages import Message, read_message
from handrail.mcp.pace import MessagePace
from handrail.mcp.peer import Peer

MAX_BODY = 32 * 1024 * 1024
MAX_POSTS = 32
"""The most messages at a time that are sent without waiting; more are dropped."""
RETRY_SECONDS, MAX_RETRY_SECONDS, MAX_RESUMPTIONS = 1.0, 60.0, 5
LASTING_SECONDS = 10.0
"""A stream that lasted so long was no failure."""
CLOSE_SECONDS, STREAM_SECONDS = 0.5, 0.5
ACCEPT = "application/json, text/event-stream"
SESSION = "mcp-session-id"
GREETINGS = ("initialize", "server/discover")
NO_SESSION = (-32600, -32000, -32001)
"""How servers of the old era refuse a request without a session."""


class HttpWire:
    """One server at one address."""

    def __init__(self, peer: Peer, endpoint: ServerEndpoint) -> None:
        self._peer = peer
        self._endpoint = endpoint
        self._session = ""
        self._tasks: set[asyncio.Task[None]] = set()
        peer.attach(self)

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        own = {"content-type": "application/json", "accept": ACCEPT, **self._session_headers(), **headers}
        body = json.dumps(message, separators=(",", ":")).encode()
        wants_answer = "id" in message and "method" in message
        try:
            response = await self._endpoint.send("POST", own, body)
        except HttpStatusError as error:
            self._handle_refusal(error, message)
            return
        except UnreachableError as error:
            self._peer.end(str(error))
            raise
        try:
            if session := response.headers.get(SESSION):
                self._session = session
            if wants_answer:
                await self._read_answer(response, message["id"], headers)
        except TransportError as error:
            raise McpError(f"The MCP server {self._peer.name!r} cannot be reached: {error}.") from error
        finally:
            response.abort()

    def post(self, message: Message) -> None:
        if len(self._tasks) < MAX_POSTS:
            self._start(self._send_quietly(message))

    async def open_stream(self) -> None:
        """
        Take in what the server says by itself, from now on.

        Waits until the server has taken the request for it, but not for long: some answer only when they have
        something to say. What a server says right after the greeting would be lost otherwise.
        """
        opened = asyncio.Event()
        self._start(self._listen(opened))
        with suppress(TimeoutError):
            async with asyncio.timeout(STREAM_SECONDS):
                await opened.wait()

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._session:
            session, self._session = self._session, ""
            headers = {SESSION: session, **self._peer.dialect.headers("", {})}
            with suppress(McpError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    (await self._endpoint.send("DELETE", headers)).abort()
        await self._endpoint.aclose()

    def _session_headers(self) -> dict[str, str]:
        return {SESSION: self._session} if self._session else {}

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_quietly(self, message: Message) -> None:
        headers = self._peer.dialect.headers(message.get("method", ""), message.get("params") or {})
        with suppress(McpError):
            await self.send(message, headers)

    def _handle_refusal(self, error: HttpStatusError, message: Message) -> None:
        """A refusal may carry an answer; else it is raised."""
        body = error.body
        if is_of_another_era(error, message, self._peer.dialect):
            self._lose_session("it was replaced by one of another revision", error)
        if isinstance(body, dict) and isinstance(body.get("error"), Mapping) and "id" in message:
            self._peer.receive({**body, "id": message["id"]})
            return
        if error.status == 404 and self._session:
            self._lose_session("it does not know our session any more", error)
        raise error

    def _lose_session(self, why: str, error: HttpStatusError) -> NoReturn:
        self._session = ""
        self._peer.end(why)
        raise SessionLostError(f"The MCP server {self._peer.name!r} must be greeted anew: {why}.") from error

    async def _read_answer(self, response: HttpResponse, number: int | str, headers: Mapping[str, str]) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            self._read_json(await read_bounded(response, MAX_BODY), number)
            return
        reader = EventReader()
        for resumption in range(MAX_RESUMPTIONS + 1):
            if await read_events(response, reader, lambda message: self._hand_on(message, number)):
                return
            if not reader.last_id or self._peer.dialect.is_modern or resumption == MAX_RESUMPTIONS:
                break
            await asyncio.sleep(retry_seconds(reader))
            response, reader = await self._open_events(reader)
        raise McpError(f"The MCP server {self._peer.name!r} ended its answer before it was complete.")

    async def _open_events(self, last: EventReader) -> tuple[HttpResponse, EventReader]:
        """The stream of what the server says by itself, or has said since the last event."""
        headers = {"accept": "text/event-stream", **self._session_headers(), **self._peer.dialect.headers("", {})}
        if last.last_id:
            headers["last-event-id"] = last.last_id
        reader = EventReader()
        reader.last_id, reader.retry_ms = last.last_id, last.retry_ms
        return await self._endpoint.send("GET", headers), reader

    def _read_json(self, body: bytes, number: int | str) -> None:
        if len(body) > MAX_BODY:
            raise McpError(f"The MCP server {self._peer.name!r} sent an answer of more than {MAX_BODY:,} bytes.")
        try:
            messages = read_message(body)
        except ValueError as error:
            raise McpError(
                f"The MCP server {self._peer.name!r} sent an answer that is not JSON: {body[:200]!r}."
            ) from error
        listed = messages if isinstance(messages, list) else [messages]
        if not [message for message in listed[:1000] if self._hand_on(message, number)]:
            raise McpError(f"The MCP server {self._peer.name!r} sent no answer to the request: {body[:200]!r}.")

    def _hand_on(self, message: object, number: int | str) -> bool:
        """Give a message to the peer; whether it is the answer to the request of that number."""
        if isinstance(message, dict) and "error" in message and message.get("id") is None:
            message["id"] = number  # an error before the server had read the id
        self._peer.receive(message)
        return isinstance(message, dict) and "method" not in message and str(message.get("id")) == str(number)

    async def _listen(self, opened: asyncio.Event) -> None:
        """The stream of what the server says by itself; servers need not have one."""
        reader = EventReader()
        failures, loop = 0, asyncio.get_running_loop()
        while failures < MAX_RESUMPTIONS:
            began = loop.time()
            try:
                response, reader = await self._open_events(reader)
                opened.set()
                await read_events(response, reader, self._take_event)
            except HttpStatusError:
                return
            except McpError:
                pass  # another try
            finally:
                opened.set()
            # proxies end quiet streams after a while, which is no failure
            failures = 0 if loop.time() - began > LASTING_SECONDS else failures + 1
            await asyncio.sleep(retry_seconds(reader))

    def _take_event(self, message: object) -> bool:
        self._peer.receive(message)
        return False


def is_of_another_era(error: HttpStatusError, message: Message, dialect: Dialect) -> bool:
    """
    Whether a refusal says that the server was renewed, or rolled back, since it was greeted, and so did nothing.

    A new one does not know our revision; an old one has not read the request, because it misses a session.
    """
    if message.get("method") in GREETINGS or not dialect.version:
        return False
    match error.body:
        case {"error": {"code": code}, **rest}:
            return code == UNSUPPORTED_VERSION if not dialect.is_modern else code in NO_SESSION and not rest.get("id")
        case _:
            return False


def retry_seconds(reader: EventReader) -> float:
    """How long the stream wants us to wait before it is resumed."""
    return RETRY_SECONDS if reader.retry_ms is None else min(reader.retry_ms / 1000, MAX_RETRY_SECONDS)


async def read_events(response: HttpResponse, reader: EventReader, take: Callable[[object], bool]) -> bool:
    """Hand on the messages of a stream until one is the last, and close it; False if the stream ended before."""
    pace = MessagePace()
    try:
        while data := await response.read():
            for name, text in reader.feed(data):
                if name in ("", "message") and text.strip() and take(_message(text)):
                    response.leave()
                    return True
                await pace.keep()
    except TransportError:
        pass  # it ended
    except EventTooLargeError as error:
        raise McpError(f"The server sent an event that is too large: {error}.") from error
    finally:
        response.abort()
    return False


def _message(text: str) -> object:
    try:
        return read_message(text)
    except ValueError:
        return text
