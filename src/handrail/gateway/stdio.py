"""MCP over standard input and output: one client, one message a line, both eras."""

import asyncio
import json
import os
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from handrail.dispatch.threads import in_thread
from handrail.errors import JsonRpcError
from handrail.gateway.links import LiveLink, PendingQuestions, SendMessage
from handrail.gateway.offering import McpServer
from handrail.gateway.protocol import (
    INVALID_REQUEST,
    MAX_BYTES,
    PARSE_ERROR,
    ClientReply,
    ClientRequest,
    id_of,
    parse_message,
    refusal,
)
from handrail.gateway.requests import RunningRequests
from handrail.gateway.service import McpService
from handrail.gateway.state import ClientState
from handrail.mcp.messages import Message
from handrail.stdio.own_output import own_output

AT_ONCE = 4096
"""What a pipe that is ready takes without blocking, in bytes."""
GRACE_SECONDS = 1.0
"""How long a client that has closed its side may still get answers."""
ONLY_CLIENT = ""
"""The name of the client at the other end of the pipe: the program that started us."""


class LineConnection:
    """One client that sends lines."""

    def __init__(self, service: McpService, send: SendMessage) -> None:
        self._service = service
        self._send = send
        self._state: ClientState | None = None
        self._pending = PendingQuestions()
        self._requests = RunningRequests()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unlisten: Callable[[], None] = lambda: None

    def take(self, line: bytes) -> None:
        """Take in a line, whatever it holds."""
        value: object = None
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            self._send(refusal(None, JsonRpcError("This line is not JSON.", PARSE_ERROR)))
            return
        try:
            message = parse_message(value)
        except JsonRpcError as error:
            self._send(refusal(id_of(value), error))
            return
        if isinstance(message, ClientReply):
            self._pending.take(message)
        elif message.id is not None:
            self._start(self._answer(message))
        elif message.method == "notifications/cancelled":
            self._requests.cancel(message.params)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: ClientRequest) -> None:
        answer = await self._requests.answer(request, self._result(request))
        if answer is not None:
            self._send(answer)

    async def _result(self, request: ClientRequest) -> Mapping[str, Any]:
        service = self._service
        if request.is_modern or request.method == "server/discover":
            state = await service.meet(ONLY_CLIENT, request)
            return await service.answer_modern(state, request, self._send)
        if request.method == "initialize":
            if self._state is not None:
                raise JsonRpcError("This connection is initialized already.", INVALID_REQUEST)
            self._state, answer = await service.greet(ONLY_CLIENT, request)
            self._unlisten = service.follow(self._state, self._send)
            return answer
        if self._state is None:
            if request.method == "ping":
                return {}
            raise JsonRpcError("Send initialize first, or _meta with the revision.", INVALID_REQUEST)
        link = LiveLink(self._state.capabilities, self._send, self._pending)
        return await service.answer(self._state, request, link)

    async def finish(self, seconds: float) -> None:
        """Answer what the client has asked for, if that takes no longer."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)

    async def aclose(self) -> None:
        """Stop what the client has asked for."""
        self._unlisten()
        tasks = list(self._tasks)
        await self._requests.aclose()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def serve_stdio(server: McpServer, stop: asyncio.Event | None = None) -> None:
    """Serve the client at standard input and output until it goes, or `stop` is set."""
    service = McpService(server)
    service.open(ONLY_CLIENT)  # what is wrong with the settings is told now
    with own_output() as out:
        writer = _Writer(out)
        connection = LineConnection(service, writer.send)
        reading = asyncio.ensure_future(_read_lines(sys.stdin.buffer, connection.take))
        stopped = asyncio.ensure_future((stop or asyncio.Event()).wait())
        try:
            waited: set[asyncio.Future[Any]] = {reading, stopped}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not stopped.done():
                await connection.finish(GRACE_SECONDS)
        finally:
            for task in (reading, stopped):
                task.cancel()
            await asyncio.gather(reading, stopped, return_exceptions=True)
            await connection.aclose()
            await service.aclose()
            await writer.aclose()


async def _read_lines(source: BinaryIO, take: Callable[[bytes], None]) -> None:
    """Hand on the lines of a stream to its end; a line that is too long ends it."""
    reader = asyncio.StreamReader(MAX_BYTES)
    loop = asyncio.get_running_loop()
    blocking = os.get_blocking(source.fileno())
    transport: asyncio.ReadTransport | None = None
    if _can_be_awaited(source):
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    else:
        _feed(reader, source, loop)
    try:
        with suppress(ValueError, asyncio.LimitOverrunError):
            while line := await reader.readline():
                if line.strip():
                    take(line)
    finally:
        if transport is not None:
            transport.pause_reading()
            with suppress(OSError, ValueError):
                os.set_blocking(source.fileno(), blocking)


def _can_be_awaited(source: BinaryIO) -> bool:
    """Whether it is a pipe, a socket or a terminal; a file and /dev/null are not."""
    mode = os.fstat(source.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or source.isatty()


def _feed(reader: asyncio.StreamReader, source: BinaryIO, loop: asyncio.AbstractEventLoop) -> None:
    """Read a stream in a thread."""

    def read() -> None:
        with suppress(RuntimeError, OSError, ValueError):  # the loop is closed, or the stream
            while data := source.readline(MAX_BYTES):
                loop.call_soon_threadsafe(reader.feed_data, data)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(reader.feed_eof)

    threading.Thread(target=read, name="handrail-stdin", daemon=True).start()


class _Writer:
    """Writes messages in their order. One that the pipe cannot take at once is written in a thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lines: deque[bytes] = deque()
        self._task: asyncio.Task[None] | None = None

    def send(self, message: Message) -> None:
        line = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        if self._task is None and len(line) <= AT_ONCE and _is_ready(self._fd):
            _write(self._fd, line)
            return
        self._lines.append(line)
        if self._task is None:
            self._task = asyncio.create_task(self._write_all())

    async def aclose(self) -> None:
        """Write what waits, unless the client does not read."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=GRACE_SECONDS)

    async def _write_all(self) -> None:
        while self._lines:
            await in_thread(partial(_write, self._fd, self._lines.popleft()))
        self._task = None


def _is_ready(fd: int) -> bool:
    return bool(select.select((), (fd,), (), 0)[1])


def _write(fd: int, line: bytes) -> None:
    rest = memoryview(line)
    with suppress(OSError):  # the client has gone
        while rest:
            rest = rest[os.write(fd, rest) :]
