"""Start a command under a reaper, and learn how it ended."""

import asyncio
import errno
import marshal
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from select import select
from typing import TYPE_CHECKING

from handrail.lazy import lazy
from handrail.processes.sandbox_contract import Restrictions
from handrail.processes.supervisor import SUPERVISOR
from handrail.processes.tree import SIGCONT, SIGKILL, children_of, descendants, send, tracer_of
from handrail.processes.wire import COMMAND, SWEEP, message
from handrail.records import record

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy("shutil")  # 4 ms, and a shell is named by its path

FILE_NAMES = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
"""How `os.fsencode` makes bytes of a text; for the many texts of an environment without its own steps."""
GRACE = 0.5
LINGER = 0.1
"""Seconds for what a command leaves behind to end by itself, for example a `tee` that it did not wait for."""
HELLO = 0.02
SWEEP_SECONDS = 10.0
OVERDUE = 1.0
"""Seconds after which a reaper that should have ended a command is looked after, again and again."""


@record
class ProcessSpec:
    """A program to start. `env` is all that it gets; times are in seconds."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    timeout: float | None = None
    grace: float = GRACE
    """Between the request to end and the kill."""
    hello: float = HELLO
    """Until its start is reported. If it ends sooner only the end is reported, which saves a wake-up."""
    pass_fds: Sequence[int] = ()
    """Descriptors that it gets under the same numbers."""
    restrictions: Restrictions = None
    """What its process does to itself before it becomes the program."""


@record
class End:
    """
    How a command ended: its exit code, or minus the signal.

    `why` is empty if it ended by itself, else `timeout`, `stopped`, `full` (too much output), or `lost`: its reaper was
    killed, so that its exit code is unknown. `stored` and `lost` are bytes of output, `trouble` the error number of the
    store.
    """

    code: int
    why: str = ""
    stored: int = 0
    lost: int = 0
    trouble: int = 0


class Running:
    """A command under its reaper. When `wait` returns, or `poll` has an answer, no process of it lives."""

    def __init__(self, call: socket.socket, due: float | None) -> None:
        self.pid = 0
        """The process id of the command itself, also its group and session; 0 if it was over at once."""
        self._call = call
        self._fd = call.fileno()
        """What the event loop watches: it looks in vain for what it does not watch, and would describe a socket."""
        self._due = None if due is None else time.monotonic() + due + OVERDUE
        self._reaper = 0
        self._heard = bytearray()
        self._end: End | None = None
        self._failure: OSError | None = None
        self._waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> End:
        """How it ended. Several may wait; giving up waiting leaves the command running."""
        while (end := self.poll()) is None:
            await self._news()
        return end

    def poll(self) -> End | None:
        """How it ended, if it has."""
        while self._end is None:
            try:
                data = self._call.recv(4096)
            except BlockingIOError:
                break
            except ConnectionResetError:
                data = b""
            if data:
                self._heard += data
                self._understand()
            else:
                _sweep(self._reaper)
                self._finish(End(-9, "lost"))
        return self._end

    def stop(self) -> None:
        """End it and everything it started; `wait` returns when that is done."""
        if self._end is None:
            with suppress(OSError):  # the reaper has just gone
                self._call.shutdown(socket.SHUT_WR)
            self._due = time.monotonic() + OVERDUE

    async def stop_and_wait(self) -> End:
        """Stop it and wait until nothing of it lives; cancelling does not shorten that."""
        self.stop()
        cancelled: asyncio.CancelledError | None = None
        while (end := self.poll()) is None:
            try:
                await self._news()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled:
            raise cancelled
        return end

    async def wait_until_started(self) -> None:
        """Wait until it runs. Raises OSError if it could not be started."""
        while self.poll() is None and not self.pid:
            await self._news()
        if self._failure:
            raise self._failure

    async def _news(self) -> None:
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiting.append(waiter)
        loop.add_reader(self._fd, self._wake)  # also for the second: the first may have been woken just now
        overdue = loop.call_at(loop.time() + self._due - time.monotonic(), self._look_after) if self._due else None
        try:
            await waiter
        finally:
            if overdue:
                overdue.cancel()
            self._waiting.remove(waiter)
            if not self._waiting and self._call.fileno() >= 0:
                loop.remove_reader(self._fd)

    def _look_after(self) -> None:
        """The reaper does not do its work: a command may have stopped it."""
        free_reapers()
        self._due = time.monotonic() + OVERDUE
        self._wake()

    def _wake(self) -> None:
        if self._call.fileno() >= 0:  # of a closed one the number may be another's by now
            asyncio.get_running_loop().remove_reader(self._fd)
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _understand(self) -> None:
        while len(self._heard) >= 8:
            size = 8 + int.from_bytes(self._heard[:8], "big")
            if len(self._heard) < size:
                return
            kind, *rest = marshal.loads(self._heard[8:size])  # noqa: S302  # from our own reaper
            del self._heard[:size]
            if kind == "started":
                self.pid, self._reaper = rest
            elif kind == "failed":
                self._failure = OSError(rest[0], os.strerror(rest[0]), os.fsdecode(rest[1]))
                self._finish(End(127, "lost"))
            else:
                self._finish(End(*rest))

    def _finish(self, end: End) -> None:
        self._end = end
        for waiter in self._waiting:  # nothing comes from a closed socket, so they have to be woken
            waiter.get_loop().remove_reader(self._fd)
            if not waiter.done():
                waiter.set_result(None)
        self._call.close()


async def start(command: ProcessSpec, stdin: int, stdout: int, stderr: int) -> Running:
    """Start a command with these descriptors, which stay the caller's. Raises OSError if it could not be started."""
    return await _start(command, (stdin, stdout, stderr), (0, 1, 2), None)


async def start_stored(command: ProcessSpec, stdin: int, store: int, quota: int) -> Running:
    """
    Start a command whose output goes into a file, in the order it is written, until the quota is used up.

    The reaper does that, whether or not this process listens.

    Raises:
        OSError: it could not be started.
    """
    return await _start(command, (store, stdin), (0,), quota)


async def _start(command: ProcessSpec, fds: Sequence[int], targets: Sequence[int], quota: int | None) -> Running:
    request = message(
        {
            "path": os.fsencode(program(command)),
            "argv": [os.fsencode(word) for word in command.argv],
            "cwd": os.fsencode(command.cwd),
            "env": {name.encode(*FILE_NAMES): value.encode(*FILE_NAMES) for name, value in command.env.items()},
            "targets": [*targets, *command.pass_fds],
            "timeout": command.timeout,
            "grace": command.grace,
            "linger": LINGER,
            "hello": command.hello,
            "quota": quota,
            "restrictions": command.restrictions,
        }
    )
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    running = Running(ours, None if command.timeout is None else command.timeout + command.grace)
    try:
        sent = ours.send(request)  # the reaper shall find it there and need not wait for us
        with theirs:
            SUPERVISOR.submit(COMMAND, (theirs.fileno(), *fds, *command.pass_fds))
        if sent < len(request):
            await asyncio.get_running_loop().sock_sendall(ours, request[sent:])
        await running.wait_until_started()
    except asyncio.CancelledError:
        await running.stop_and_wait()
        raise
    except OSError:
        ours.close()
        raise
    return running


def program(command: ProcessSpec) -> str:
    """The file to start. Raises FileNotFoundError if there is none of that name on the command's PATH."""
    name = command.argv[0]
    if "/" in name:
        return name
    found = shutil.which(name, path=command.env.get("PATH", os.defpath))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, "There is no such program", name)
    return os.path.abspath(found)  # noqa: PTH100  # the reaper is in another folder; links are kept


def free_reapers() -> None:
    """Let reapers go on that a command has stopped, or holds like a debugger."""
    pids = [SUPERVISOR.pid, *children_of(SUPERVISOR.pid)]
    holding = {tracer_of(pid) for pid in pids}.intersection(descendants(SUPERVISOR.pid))
    send(holding, SIGKILL)
    send(pids, SIGCONT)


def _sweep(reaper: int) -> None:
    """A reaper was killed: end what it leaves behind, which fell to the supervisor."""
    send([SUPERVISOR.pid], SIGCONT)
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            SUPERVISOR.submit(SWEEP, (theirs.fileno(),))
        ours.sendall(message(reaper))
        select([ours], [], [], SWEEP_SECONDS)
