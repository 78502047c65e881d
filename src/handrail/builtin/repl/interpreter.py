"""
The Python interpreter of a session: one process that runs code, started on demand and restarted when it was lost.

It runs under a reaper like every command, so it ends with the session or with handrail, together with all
processes that its code started.
"""

import asyncio
import json
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from handrail.builtin.bash.environment import user_environment, with_hook_exports
from handrail.builtin.bash.shell import PreparedCommand, wrap_in_sandbox
from handrail.builtin.services import ToolServices
from handrail.builtin.support.live_output import run_with_progress
from handrail.errors import ToolError
from handrail.processes.sandbox_contract import UNCONFINED, Sandbox, Standing, Where
from handrail.processes.spawn import ProcessSpec, Running, start
from handrail.records import record
from handrail.tools.context import ToolContext

KERNEL = str(Path(__file__).with_name("kernel.py"))
CHUNK = 65_536
DRAINED_CHUNKS = 32
"""More than a pipe holds: later output belongs to the next call."""
MAX_REPLY = 1_000_000
MOVED = "the interpreter was started anew, because the sandbox was switched on or off: what it knew is lost"
INTERRUPTED = "the interpreter was started anew, because the call before was interrupted: what it knew is lost"


@record
class CodeResult:
    """The result of code. `why` the interpreter was lost: empty, `timeout`, `full` (too much output) or `ended`."""

    value: str = ""
    error: str = ""
    why: str = ""
    code: int = 0
    stored: int = 0
    lost: int = 0
    notice: str = ""
    confined: bool = False
    """Whether it ran in the sandbox."""


class Interpreter:
    """Runs one piece of code at a time for all agents of the session."""

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._kernel: Kernel | None = None
        self._notice = ""
        self._alone = asyncio.Lock()

    async def run(self, code: str, seconds: float, store: int, ctx: ToolContext) -> CodeResult:
        """Run code and write its output to the store. If it does not end in time, the interpreter is lost."""
        async with self._alone:
            kernel = self._kernel = await self._ready(ctx.cwd)
            notice, self._notice = self._notice, ""
            pump = _Pump(kernel, store, self._services.output_quota())
            try:
                result = await run_with_progress(_reply(kernel, code, pump, seconds), store, ctx)
            except TimeoutError:
                result = CodeResult(why="timeout", code=await self._lose(kernel))
            except EOFError:
                result = CodeResult(why="full" if pump.full else "ended", code=await self._lose(kernel))
            except asyncio.CancelledError:
                self._notice = INTERRUPTED
                await self._lose(kernel)
                raise
            return replace(result, stored=pump.stored, lost=pump.lost, notice=notice, confined=kernel.confined)

    async def end(self) -> None:
        """End the process and everything it started."""
        if (kernel := self._kernel) is None:
            return
        if self._alone.locked():
            await kernel.running.stop_and_wait()  # the running call notices and releases it
        else:
            await self._lose(kernel)

    async def _lose(self, kernel: "Kernel") -> int:
        """End the process and return its exit code."""
        self._kernel = None
        try:
            return (await kernel.running.stop_and_wait()).code
        finally:
            kernel.release()

    async def standing(self) -> Standing:
        """Where code would run; which programs it starts is unknown."""
        box = self._services.sandbox
        return UNCONFINED if box is None else await box.standing(None)

    async def _ready(self, cwd: Path) -> "Kernel":
        """The running process, inside or outside the sandbox as configured now."""
        standing = await self.standing()
        if standing.where is Where.REFUSED:
            raise ToolError(f"Nothing was run: {standing.reason}. Do it another way, or ask the user.")
        inside = standing.where is Where.INSIDE
        if self._kernel is not None and self._kernel.confined != inside:
            self._notice = MOVED
            await self._lose(self._kernel)
        return self._kernel or await self._start_kernel(cwd, self._services.sandbox if inside else None)

    async def _start_kernel(self, cwd: Path, sandbox: Sandbox | None) -> "Kernel":
        folder = str(cwd) if os.path.isdir(cwd) else self._services.working_dirs()[0]  # noqa: PTH112, ASYNC240
        env = {**user_environment(with_hook_exports(self._services.env), self._services.programs()), "PWD": folder}
        prepared = await wrap_in_sandbox(
            ProcessSpec([sys.executable, "-I", KERNEL], folder, env, grace=0.0, hello=0.0), sandbox
        )
        ours, theirs = socket.socketpair()
        output, end = os.pipe()
        ours.setblocking(False)
        os.set_blocking(output, False)
        try:
            running = await start(prepared.command, theirs.fileno(), end, end)
        except BaseException as error:
            ours.close()
            os.close(output)
            prepared.close()
            if isinstance(error, OSError):
                raise ToolError(
                    f"Python could not be started: {error.strerror}: {error.filename!r}. Ask the user, or use Bash."
                ) from error
            raise
        finally:
            theirs.close()
            os.close(end)
        return Kernel(running, ours, output, prepared)


async def _reply(kernel: "Kernel", code: str, pump: "_Pump", seconds: float) -> CodeResult:
    loop = asyncio.get_running_loop()
    loop.add_reader(kernel.output, pump.read)
    try:
        async with asyncio.timeout(seconds):
            return await kernel.ask(code)
    finally:
        loop.remove_reader(kernel.output)
        pump.drain()


class Kernel:
    """The running process: a socket for requests and a pipe with the output of its code."""

    def __init__(self, running: Running, control: socket.socket, output: int, prepared: PreparedCommand) -> None:
        self.running = running
        self.output = output
        self.confined = prepared.sandboxed
        self._control = control
        self._close = prepared.close

    async def ask(self, code: str) -> CodeResult:
        """Run code in the process and return its reply; raises EOFError if it has ended or the reply is malformed."""
        loop = asyncio.get_running_loop()
        received = bytearray()
        try:
            await loop.sock_sendall(self._control, json.dumps({"code": code}).encode() + b"\n")
            while not received.endswith(b"\n") and len(received) < MAX_REPLY:
                data = await loop.sock_recv(self._control, CHUNK)
                if not data:
                    raise EOFError
                received += data
            reply: dict[str, Any] = json.loads(received)
        except (ConnectionError, ValueError) as error:
            raise EOFError from error
        return CodeResult(str(reply.get("value", "")), str(reply.get("error", "")))

    def release(self) -> None:
        """Close its descriptors after it has ended."""
        self._control.close()
        os.close(self.output)
        self._close()


class _Pump:
    """Moves the output of the code to the store until the quota is used up."""

    def __init__(self, kernel: Kernel, store: int, quota: int) -> None:
        self._kernel = kernel
        self._store = store
        self._quota = quota
        self.stored = 0
        self.lost = 0
        self.full = False

    def read(self) -> bool:
        """Read some output. False = there is none at the moment."""
        try:
            data = os.read(self._kernel.output, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            asyncio.get_running_loop().remove_reader(self._kernel.output)
            return False
        self._keep(data)
        return True

    def drain(self) -> None:
        """Read the output that was written so far."""
        for _ in range(DRAINED_CHUNKS):
            if not self.read():
                return

    def _keep(self, data: bytes) -> None:
        room = data[: max(0, self._quota - self.stored)]
        try:
            written = os.write(self._store, room)
        except OSError:
            written = 0
        self.stored += written
        self.lost += len(data) - written
        if self.stored >= self._quota and not self.full:
            self.full = True
            self._kernel.running.stop()


_OF_SESSIONS: dict[Path, Interpreter] = {}


def interpreter_of(services: ToolServices) -> Interpreter:
    """The interpreter of a session."""
    return _OF_SESSIONS.setdefault(services.state, Interpreter(services))


async def close_interpreter(services: ToolServices) -> None:
    """End the interpreter of a session."""
    if (interpreter := _OF_SESSIONS.pop(services.state, None)) is not None:
        await interpreter.end()
