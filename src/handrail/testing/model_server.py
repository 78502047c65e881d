"""
A model server on loopback: real HTTP, real bytes, scripted answers.

    async with ModelServer([Reply((Text("Hi"),))]) as server:
        ...  # base URL server.url for Anthropic's format, server.url + "/v1" for OpenAI's

Answers are sent in order. The requests it received are in `requests`.
"""

import asyncio
import json
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from types import TracebackType
from typing import Any, Self

from handrail.conversation.blocks import AssistantBlock
from handrail.records import record
from handrail.testing.wire_answers import FORMATS, Json, ScriptedAnswer


@record
class Reply:
    """
    One scripted answer, and what goes wrong with it.

    `piece`: characters per delta. `chunk`: bytes per write (0 = one event per write). `gates`: events to wait for
    before the frame with that number. `cut_after`, `stall_after`: after so many frames the connection breaks or stalls.
    A `status` other than 200 sends `error` instead, 0 hangs up. `raw` sends these chunks as they are, with `headers`.
    `to`: it answers only a conversation that begins with a message in which this text stands, in whatever order agents
    ask; without it, the next request gets it.
    """

    content: tuple[AssistantBlock, ...] = ()
    stop_reason: str = ""
    input_tokens: int = 10
    output_tokens: int = 5
    model: str = "scripted"
    piece: int = 0
    chunk: int = 0
    gates: Mapping[int, asyncio.Event] = field(default_factory=dict)
    cut_after: int | None = None
    stall_after: int | None = None
    status: int = 200
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: tuple[bytes, ...] = ()
    to: str = ""


@record
class Received:
    """A request as it came in. `connection` counts connections from 1."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    connection: int

    @property
    def body(self) -> dict[str, Any]:
        """Its JSON."""
        value: dict[str, Any] = json.loads(self.raw)
        return value


class ModelServer:
    """`strict` answers 400 to a history that real servers refuse. `left` is set when a client leaves mid-answer."""

    def __init__(
        self, replies: Iterable[Reply] = (), *, strict: bool = False, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self._replies = iter(replies)
        self._held: list[Reply] = []
        self._strict = strict
        self._port = port
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0
        self.requests: list[Received] = []
        self.left = asyncio.Event()
        self.stalled = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port, limit=1 << 20, ssl=self._tls)
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # asyncio closes the sockets in the loop's next round

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        number = self._connections
        try:
            while (received := await self._receive(reader, number)) is not None:
                if not received.path.endswith(tuple(FORMATS)):  # some clients probe the server first
                    _whole(writer, 404, {"error": {"type": "not_found_error", "message": received.path}}, {})
                    continue
                self.requests.append(received)
                await self._answer(received, reader, writer)
        except ConnectionError:
            self.left.set()
        except asyncio.CancelledError:
            pass  # the server is closing
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _receive(self, reader: asyncio.StreamReader, connection: int) -> Received | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        return Received(first.split(" ")[1].partition("?")[0], headers, raw, connection)

    async def _answer(self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = received.body  # parsed once: it grows with every turn
        reply = self._reply_to(received.path, asked)
        if not reply.status:
            raise ConnectionResetError
        if reply.status != 200:
            _whole(writer, reply.status, {"error": {"type": "scripted", "message": reply.error}}, reply.headers)
            return
        _, events, whole = _format(received.path)
        answer = ScriptedAnswer(
            reply.content, reply.stop_reason, reply.model, reply.input_tokens, reply.output_tokens, reply.piece
        )
        if not reply.raw and not asked.get("stream"):
            _whole(writer, 200, whole(answer), reply.headers)
            return
        _head(writer, 200, {"content-type": "text/event-stream", "transfer-encoding": "chunked", **reply.headers})
        frames = [*reply.raw] if reply.raw else [*events(answer)]
        if reply.chunk:
            joined = b"".join(frames)
            frames = [joined[at : at + reply.chunk] for at in range(0, len(joined), reply.chunk)]
        await self._play(reply, frames, reader, writer)

    async def _play(
        self, reply: Reply, frames: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for number, frame in enumerate(frames):
            if number == reply.cut_after:
                raise ConnectionResetError
            if number == reply.stall_after:
                await self._until_left(reader)
            if number in reply.gates:
                await self._gate(reply.gates[number], reader)
            writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _gate(self, gate: asyncio.Event, reader: asyncio.StreamReader) -> None:
        waiting = asyncio.ensure_future(gate.wait())
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not gate.is_set():
                raise ConnectionResetError
        finally:
            waiting.cancel()
            leaving.cancel()
            await asyncio.gather(waiting, leaving, return_exceptions=True)

    async def _until_left(self, reader: asyncio.StreamReader) -> None:
        self.stalled.set()
        await reader.read(1)
        raise ConnectionResetError

    def _reply_to(self, path: str, asked: dict[str, Any]) -> Reply:
        if self._strict:
            problem = pairing_problem(_format(path)[0], asked)
            if problem:
                return Reply(status=400, error=problem)
        messages = asked.get("messages") or [""]
        start = json.dumps(messages[0], ensure_ascii=False)
        for reply in [*self._held]:
            if reply.to in start:
                self._held.remove(reply)
                return reply
        for reply in self._replies:
            if reply.to in start:
                return reply
            self._held.append(reply)
        return Reply(status=400, error="the script of this server has no more answers")


def _format(path: str) -> Any:
    return next(FORMATS[end] for end in FORMATS if path.endswith(end))


def _head(writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str]) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode())


def _whole(writer: asyncio.StreamWriter, status: int, body: dict[str, Any], headers: Mapping[str, str]) -> None:
    raw = json.dumps(body).encode()
    _head(writer, status, {"content-type": "application/json", "content-length": str(len(raw)), **headers})
    writer.write(raw)


def pairing_problem(api: str, body: Json) -> str:
    """Why a strict server answers 400 to this request; empty if it does not."""
    match api:
        case "anthropic":
            return _anthropic(body.get("messages", []))
        case "openai":
            return _chat(body.get("messages", []))
        case _:
            return _responses(body.get("input", []))


def _anthropic(messages: Sequence[Json]) -> str:
    waiting: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        content = message["content"]
        blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(waiting):
            return f"messages.{number}: calls {waiting} need one result each, found {results}"
        if any(block["type"] == "tool_result" for block in blocks[len(results) :]):
            return f"messages.{number}: tool_result blocks must come first"
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks) or not blocks:
            return f"messages.{number}: text content blocks must be non-empty"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if message["role"] == "user" and waiting:
            return f"messages.{number}: a user message holds tool_use"
        if len({*waiting}) != len(waiting) or seen & {*waiting}:
            return f"messages.{number}: tool_use ids must be unique"
        seen |= {*waiting}
    return f"calls {waiting} have no results" if waiting else ""


def _chat(messages: Sequence[Json]) -> str:
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"messages.{number}: no open call {message['tool_call_id']!r}"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"messages.{number}: calls {waiting} have no tool message"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return f"calls {waiting} have no tool message" if waiting else ""


def _responses(items: Sequence[Json]) -> str:
    waiting: list[str] = []
    for number, item in enumerate(items):
        if item.get("type") == "function_call":
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in waiting:
                return f"input.{number}: no open call {item['call_id']!r}"
            waiting.remove(item["call_id"])
        elif item.get("role") == "user" and waiting:
            return f"input.{number}: no tool output found for {waiting}"
    return f"no tool output found for {waiting}" if waiting else ""
