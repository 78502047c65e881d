"""An MCP server as a child process: one JSON message per line on its standard input and output."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Self

from handrail.conversation.logger import get_logger
from handrail.errors import McpError
from handrail.mcp.messages import Message, read_message, shown_text
from handrail.mcp.pace import MessagePace
from handrail.mcp.peer import Peer
from handrail.processes.pipes import Pipes, end_program, start_with_pipes
from handrail.processes.spawn import ProcessSpec, Running

log = get_logger(__name__)

MAX_LINE = 32 * 1024 * 1024
MAX_UNREAD = 1024 * 1024
"""Unread bytes at a server above which optional messages are dropped."""
STDERR_LINES = 20
STDERR_BYTES, STDERR_PAUSE = 65_536, 0.02
"""A piece of standard error, and the seconds after a full one: a program that writes without end has to wait."""
GRACE = 0.4
"""Seconds to wait for a server to exit, before SIGTERM and again before SIGKILL."""

EXIT_SECONDS = 2.0
"""How long a server that has closed its output may take to exit before it counts as one that lives on."""

Release = Callable[[], None]


class StdioWire:
    """
    A running server under a reaper, with its last lines of standard error.

    Everything that it started ends with it, also what left its process group: on `aclose`, and when we are killed.
    """

    def __init__(self, peer: Peer, running: Running, pipes: Pipes, release: Release) -> None:
        self.pid = running.pid
        self._peer = peer
        self._running = running
        self._pipes = pipes
        self._release = release
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._collect_stderr())]
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, peer: Peer, spec: ProcessSpec, release: Release = lambda: None) -> Self:
        """
        Start a server and attach it to the peer; raises McpError if it cannot be started.

        `release` is called when it and everything that it started has ended.
        """
        try:
            running, pipes = await start_with_pipes(spec, MAX_LINE)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise McpError(
                f"The MCP server {peer.name!r} cannot be started: {why}: {spec.argv[0]!r}. Check its command."
            ) from error
        wire = cls(peer, running, pipes, release)
        peer.attach(wire)
        return wire

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        stdin = self._pipes.stdin
        try:
            if stdin.is_closing():  # it takes no more, and what is written is lost without a word
                raise BrokenPipeError
            stdin.write(_line(message))
            if stdin.transport.get_write_buffer_size():
                await stdin.drain()
        except (OSError, ConnectionError) as error:
            await asyncio.wait(self._tasks, timeout=GRACE)  # they learn how it ended
            self._end("it has ended")
            raise McpError(
                f"The MCP server {self._peer.name!r} cannot be asked: {self._peer.ended.result()}"
            ) from error

    def post(self, message: Message) -> None:
        stdin = self._pipes.stdin
        if not stdin.is_closing() and stdin.transport.get_write_buffer_size() < MAX_UNREAD:
            stdin.write(_line(message))

    async def open_stream(self) -> None:
        """It is open."""

    async def aclose(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await end_program(self._running, self._pipes, self._tasks, GRACE)
        finally:
            self._release()

    async def _read(self) -> None:
        pace = MessagePace()
        try:
            while line := await self._pipes.stdout.readline():
                self._take_line(line)
                await pace.keep()
        except ValueError:
            self._end(f"it sent a line of more than {MAX_LINE:,} bytes")
        except McpError as error:
            self._end(str(error))
        except Exception:
            log.exception("a message of the MCP server %r could not be handled", self._peer.name)
            self._end("it sent a message that could not be handled")
        try:
            how = f"it ended with exit code {(await asyncio.wait_for(self._running.wait(), EXIT_SECONDS)).code}"
        except TimeoutError:
            how = "it closed its standard output, though it still runs"
        await asyncio.wait(self._tasks[1:], timeout=GRACE)  # what it said last
        self._end(how)

    def _take_line(self, line: bytes) -> None:
        try:
            message = read_message(line)
        except ValueError:
            if line.strip():
                self._peer.complain(line)
            return
        self._peer.receive(message)

    async def _collect_stderr(self) -> None:
        while piece := await self._pipes.stderr.read(STDERR_BYTES):
            self._stderr.extend(piece.decode("utf-8", "replace").splitlines()[-STDERR_LINES:])
            if len(piece) == STDERR_BYTES:
                await asyncio.sleep(STDERR_PAUSE)

    def _end(self, why: str) -> None:
        last = shown_text(" / ".join(self._stderr)[-500:])
        self._peer.end(f"{why}. Its last output: {last}" if last else why)


def _line(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
