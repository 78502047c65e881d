"""An MCP server as a child process: one JSON message per line on its standard input and output."""

import asyncio
import contextlib
import json
import logging
import os
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Self

from handrail.errors import McpError
from handrail.mcp.peer import NOTIFY_TIMEOUT, Message, OnProgress, result_of
from handrail.processes.spawn import ProcessSpec, Running, start
from handrail.records import record

log = logging.getLogger(__name__)

MAX_LINE = 32 * 1024 * 1024
MAX_UNREAD = 1024 * 1024
"""Unread bytes at a server above which optional messages are dropped."""
STDERR_LINES = 20
GRACE = 0.4
"""Seconds to wait for a server to exit, before SIGTERM and again before SIGKILL."""


@record
class Pipes:
    """Our ends of the standard streams of a server."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    transports: tuple[asyncio.BaseTransport, ...]

    def close(self) -> None:
        """Close all of them."""
        for transport in self.transports:
            transport.close()


async def open_pipes() -> tuple[Pipes, tuple[int, int, int]]:
    """Pipes for a server, and the descriptors that it gets."""
    loop = asyncio.get_running_loop()
    (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = os.pipe(), os.pipe(), os.pipe()
    out, stdout_reader = await _reading(from_stdout)
    err, stderr_reader = await _reading(from_stderr)
    into, flow = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(to_stdin, "wb", 0)
    )
    pipes = Pipes(asyncio.StreamWriter(into, flow, None, loop), stdout_reader, stderr_reader, (into, out, err))
    return pipes, (stdin, stdout, stderr)


async def _reading(fd: int) -> tuple[asyncio.BaseTransport, asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=MAX_LINE)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", 0))
    return transport, reader


class StdioPeer:
    """
    A running server under a reaper, with its last lines of standard error.

    Everything that it started ends with it, also what left its process group: on `aclose`, and when we are killed.
    """

    def __init__(self, name: str, running: Running, pipes: "Pipes") -> None:
        self._name = name
        self._running = running
        self._pipes = pipes
        self._number = 0
        self._pending: dict[int, asyncio.Future[Message]] = {}
        self._progress: dict[int, OnProgress] = {}
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._collect_stderr())]
        self._closed = ""

    @classmethod
    async def start(cls, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Self:
        """Start a server; raises McpError if it cannot be started."""
        try:
            pipes, theirs = await open_pipes()
            try:
                running = await start(ProcessSpec(argv, cwd, env, grace=GRACE), *theirs)
            except BaseException:
                pipes.close()
                raise
            finally:
                for fd in theirs:
                    os.close(fd)
        except (OSError, ValueError) as error:
            raise McpError(f"The MCP server {name!r} cannot be started ({argv[0]!r}): {error}.") from error
        return cls(name, running, pipes)

    async def request(
        self, method: str, params: Mapping[str, Any], *, time_limit: float, on_progress: OnProgress | None = None
    ) -> Mapping[str, Any]:
        self._number += 1
        number = self._number
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        if on_progress is not None:
            self._progress[number] = on_progress
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": number}}
        try:
            async with asyncio.timeout(time_limit):  # also for a server that reads nothing
                await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)})
                return result_of(await answer, method)
        except TimeoutError as error:
            self._cancel(number, "it took too long")
            raise McpError(f"The MCP server {self._name!r} did not answer {method} in {time_limit:g} s.") from error
        except asyncio.CancelledError:
            self._cancel(number, "it is no longer needed")
            raise
        finally:
            self._pending.pop(number, None)
            self._progress.pop(number, None)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        try:
            async with asyncio.timeout(NOTIFY_TIMEOUT):
                await self._send({"jsonrpc": "2.0", "method": method, "params": dict(params)})
        except TimeoutError as error:
            raise McpError(f"The MCP server {self._name!r} did not take {method} in {NOTIFY_TIMEOUT:g} s.") from error

    async def aclose(self) -> None:
        self._end("it was closed")
        self._pipes.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._running.wait(), GRACE)
        await self._running.stop_and_wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._pipes.close()

    def _cancel(self, number: int, reason: str) -> None:
        params = {"requestId": number, "reason": reason}
        self._post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def _post(self, message: Message) -> None:
        """Send an optional message, unless the server has left too much unread."""
        stdin = self._pipes.stdin
        if not self._closed and stdin.transport.get_write_buffer_size() < MAX_UNREAD:
            stdin.write(_line(message))

    async def _send(self, message: Message) -> None:
        if self._closed:
            raise McpError(f"The MCP server {self._name!r} cannot be asked: {self._closed}.")
        try:
            self._pipes.stdin.write(_line(message))
            await self._pipes.stdin.drain()
        except (OSError, ConnectionError) as error:
            await asyncio.wait(self._tasks, timeout=GRACE)  # they learn how it ended
            self._end("it has ended")
            text = f"The MCP server {self._name!r} cannot be asked: {self._closed}.{self._last_output()}"
            raise McpError(text) from error

    async def _read(self) -> None:
        try:
            while line := await self._pipes.stdout.readline():
                self._handle_line(line)
        except ValueError:
            self._end(f"it sent a line of more than {MAX_LINE:,} bytes")
        except Exception:
            log.exception("a message of the MCP server %r could not be handled", self._name)
            self._end("it sent a message that could not be handled")
        end = await self._running.wait()
        self._end(f"it ended with exit code {end.code}")

    def _handle_line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            if line.strip():
                log.warning("the MCP server %r wrote a line that is not a message: %.200r", self._name, line)
            return
        match message:
            case {"id": int() | str() as number, "method": str()}:
                error = {"code": -32601, "message": "handrail does not answer requests of servers yet"}
                self._post({"jsonrpc": "2.0", "id": number, "error": error})
            case {"id": int(number)}:
                answer = self._pending.get(number)
                if answer is not None and not answer.done():
                    answer.set_result(message)
            case {"method": "notifications/progress", "params": {"progressToken": int(number)} as progress}:
                if number in self._progress:
                    self._progress[number](progress)
            case _:
                pass  # other notifications are not used yet

    async def _collect_stderr(self) -> None:
        while piece := await self._pipes.stderr.read(65_536):
            self._stderr.extend(piece.decode("utf-8", "replace").splitlines()[-STDERR_LINES:])

    def _end(self, why: str) -> None:
        self._closed = self._closed or why
        for answer in self._pending.values():
            if not answer.done():
                text = f"The MCP server {self._name!r} cannot be asked: {self._closed}.{self._last_output()}"
                answer.set_exception(McpError(text))
                answer.exception()  # a request that fails while it is being sent never looks at its answer

    def _last_output(self) -> str:
        return f" Its last output: {' / '.join(self._stderr)[-500:]}" if self._stderr else ""


def _line(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
