"""One HTTP request and its answer: JSON, or events where there is something to say before the answer."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from handrail.errors import HttpRefusalError
from handrail.gateway.links import SendMessage
from handrail.gateway.protocol import MAX_BYTES, PARSE_ERROR
from handrail.mcp.messages import Message
from handrail.serve.guard import Receive, Send

KEEP_ALIVE = 15.0
"""Seconds after which a silent stream sends a comment, so that proxies keep it open."""

Work: TypeAlias = Callable[[SendMessage], Awaitable[tuple[int, Message | None]]]
"""Works on a request: the status and the message that answers it, after any others that it sends."""


async def read_json(headers: Mapping[str, str], receive: Receive) -> object:
    """The JSON in the body of a request."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HttpRefusalError(415, "Send JSON, with the content type application/json.")
    body = bytearray()
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise HttpRefusalError(400, "The request broke off.")
        body += event.get("body", b"")
        if len(body) > MAX_BYTES:
            raise HttpRefusalError(413, f"A message may have {MAX_BYTES:,} bytes.")
        if not event.get("more_body"):
            break
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HttpRefusalError(400, "The body is not JSON.", PARSE_ERROR) from error


async def answer_json(send: Send, status: int, message: Message, extra: Mapping[str, str] | None = None) -> None:
    """Answer with one message."""
    await _start(send, status, {"content-type": "application/json", **(extra or {})})
    await send({"type": "http.response.body", "body": _encode(message)})


async def answer_nothing(send: Send, status: int = 202) -> None:
    """Answer that the message was taken in."""
    await _start(send, status, {})
    await send({"type": "http.response.body", "body": b""})


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    listed = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    listed.append((b"cache-control", b"no-store"))
    await send({"type": "http.response.start", "status": status, "headers": listed})


def _encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":"), default=str).encode()


class Exchange:
    """The answer to one request, while it is worked on."""

    def __init__(
        self,
        headers: Mapping[str, str],
        receive: Receive,
        send: Send,
        otherwise: SendMessage = lambda _message: None,
    ) -> None:
        """`otherwise` gets what is sent when the client has gone."""
        accepted = headers.get("accept", "*/*")
        self._otherwise = otherwise
        self._is_over = False
        self.can_stream = "text/event-stream" in accepted or "*/*" in accepted
        self._receive = receive
        self._send = send
        self._messages: deque[Message] = deque()
        self._news = asyncio.Event()
        self._streams = False

    async def run(
        self,
        work: Work,
        *,
        stop_when_left: bool,
        keep: "set[asyncio.Future[Any]] | None" = None,
        at_once: bool = False,
    ) -> None:
        """Work on the request and answer it. `stop_when_left`: a client that goes away ends the work."""
        task = asyncio.ensure_future(work(self._tell))
        if keep is not None:
            keep.add(task)
            task.add_done_callback(keep.discard)
        left = asyncio.ensure_future(self._wait_for_leave())
        for each in (task, left):
            each.add_done_callback(lambda _done: self._news.set())
        try:
            if at_once:
                await self._open_stream()
            await self._answer(task, left)
        finally:
            self._is_over = True
            left.cancel()
            if stop_when_left and not task.done():
                task.cancel()
            await asyncio.wait({left, task} if stop_when_left else {left})

    async def _answer(self, task: "asyncio.Future[tuple[int, Message | None]]", left: "asyncio.Future[None]") -> None:
        while True:
            await self._wait_for_news()
            while self._messages and self.can_stream:
                if not self._streams:
                    await self._open_stream()
                await self._send_event(self._messages.popleft())
            if task.done():
                break
            if left.done():
                return
        with suppress(asyncio.CancelledError):  # the session ended
            status, message = task.result()
            if self._streams:
                if message is not None:
                    await self._send_event(message)
                await self._send({"type": "http.response.body", "body": b""})
            elif message is None:
                await answer_nothing(self._send)
            else:
                await answer_json(self._send, status, message)
            return
        await self._close()

    async def _wait_for_news(self) -> None:
        while True:
            try:
                async with asyncio.timeout(KEEP_ALIVE if self._streams else None):
                    await self._news.wait()
                    self._news.clear()
                    return
            except TimeoutError:
                await self._send({"type": "http.response.body", "body": b": \n\n", "more_body": True})

    def _tell(self, message: Message) -> None:
        if self._is_over:
            self._otherwise(message)
            return
        self._messages.append(message)
        self._news.set()

    async def _open_stream(self) -> None:
        self._streams = True
        await _start(self._send, 200, {"content-type": "text/event-stream", "x-accel-buffering": "no"})
        await self._send({"type": "http.response.body", "body": b"", "more_body": True})

    async def _send_event(self, message: Message) -> None:
        body = b"event: message\ndata: " + _encode(message) + b"\n\n"
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _close(self) -> None:
        if self._streams:
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await answer_nothing(self._send)

    async def _wait_for_leave(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
