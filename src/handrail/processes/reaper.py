"""
One call of a reaper: it starts the command, and reports how it ended when no process of it is left.

Starting and forking must be cheap: modules that are slow to import are not used here.
"""

import marshal
import os
import time
from _socket import socket
from fcntl import F_DUPFD_CLOEXEC, fcntl
from select import POLLIN, poll

from handrail.processes.output_file import OutputFile
from handrail.processes.tree import SIGCONT, SIGTERM, descendants, kill_below, send
from handrail.processes.wire import HIGH, message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULTED = (2, 13, 25)
"""SIGINT, SIGPIPE and SIGXFSZ, which Python sets to something of its own."""
TICK, QUICK = 0.5, 0.002
SOME, MUCH, PAUSE = 1 << 12, 1 << 16, 0.0005
NO_FD = -1
RUNS, LINGERS, ENDS, IS_KILLED = range(4)


class Job:
    """What to start and how long it may go on, as it comes over the socket."""

    path: bytes
    argv: list[bytes]
    cwd: bytes
    env: dict[bytes, bytes]
    targets: list[int]
    """The numbers that the descriptors after the store have in the command."""
    timeout: float | None
    grace: float
    linger: float
    hello: float
    quota: int | None
    """How many bytes of output are kept in the store. None = there is no store."""
    restrictions: "dict[str, Any] | None"
    """What the command's process does to itself before it becomes the command."""

    def __init__(self, fields: "dict[str, Any]") -> None:
        self.__dict__.update(fields)


class Reaper:
    """
    Starts one command, keeps its output if that is wanted, and ends whatever is left of it.

        runs ──► lingers (it is over, but others of its call live) ──► ends (SIGTERM) ──► is killed, until none is left
          └───────────── timeout, given up, or too much output ───────────┘
    """

    def __init__(self, call: socket, job: Job, fds: list[int]) -> None:
        self.call = call
        self.job = job
        self.store = None if job.quota is None else OutputFile(fds.pop(0), job.quota)
        self.fds = fds
        self.main = 0
        self.pidfd = NO_FD
        self.greeted = False
        self.status: int | None = None
        self.why = ""

    def run(self) -> None:
        try:
            self.main = self.spawn()
        except OSError as error:
            self.tell("failed", error.errno or 0, os.fsencode(error.filename or self.job.path))
            return
        self.pidfd = pidfd_of(self.main)
        self.watch()
        if self.store:
            self.store.drain()
        counts = (self.store.stored, self.store.lost, self.store.trouble) if self.store else (0, 0, 0)
        self.tell("ended", self.status or 0, self.why, *counts)

    def greet(self) -> None:
        """Report that the command runs. If it ends at once only the end is reported, which saves a wake-up."""
        if not self.greeted:
            self.greeted = True
            self.tell("started", self.main, os.getpid())

    def tell(self, *parts: "Any") -> None:
        try:
            self.call.sendall(message(*parts))
        except OSError:
            return  # the caller has gone

    def spawn(self) -> int:
        job = self.job
        os.chdir(job.cwd)
        free = max(HIGH, *job.targets) + 1
        if free > HIGH + 1:
            self.fds = [fcntl(fd, F_DUPFD_CLOEXEC, free) for fd in self.fds]
        ends = [(self.store.end, 1), (self.store.end, 2)] if self.store else []
        ends += zip(self.fds, job.targets, strict=True)
        if job.restrictions:
            pid = _spawn_restricted(job, ends)
        else:
            actions = [(os.POSIX_SPAWN_DUP2, fd, target) for fd, target in ends]
            pid = os.posix_spawn(
                job.path, job.argv, job.env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=DEFAULTED
            )
        for fd in self.fds:
            os.close(fd)
        if self.store:
            os.close(self.store.end)
        return pid

    def watch(self) -> None:
        """Wait until no process of the call is left."""
        ears = poll()
        for fd in (self.call.fileno(), self.pidfd, self.store.pipe if self.store else NO_FD):
            if fd != NO_FD:
                ears.register(fd, POLLIN)
        now = time.monotonic()
        hello = now + self.job.hello
        phase, until = RUNS, float("inf") if self.job.timeout is None else now + self.job.timeout
        while self.reap():
            if phase == RUNS and self.status is not None:
                phase, until = LINGERS, now + self.job.linger
            if now >= until or (self.why and phase < ENDS):
                phase, until = self.escalate(phase, now)
            pause = TICK if phase == RUNS and self.pidfd != NO_FD else QUICK
            if not self.greeted:
                pause = min(pause, hello - now)
            for fd, _ in ears.poll(max(0.0, min(pause, until - now)) * 1000):
                if not self.hear(fd):
                    ears.unregister(fd)
            now = time.monotonic()
            if now >= hello:
                self.greet()

    def reap(self) -> bool:
        """Collect the processes that ended. False = none is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                if pid == self.main:
                    self.status = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return False

    def escalate(self, phase: int, now: float) -> tuple[int, float]:
        """The next stronger means, and until when it is given time."""
        if phase == RUNS:
            self.why = self.why or "timeout"
        if phase < ENDS:
            send(descendants(os.getpid()), SIGTERM, SIGCONT)
            return ENDS, now + self.job.grace
        kill_below(os.getpid())
        return IS_KILLED, now + QUICK

    def hear(self, fd: int) -> bool:
        """Handle an event of a descriptor. False = it will have no more."""
        if self.store and fd == self.store.pipe:
            before = self.store.stored
            more = self.store.take()
            if SOME < self.store.stored - before < MUCH:
                time.sleep(PAUSE)  # let the pipe fill up: large moves are cheap, many small ones are not
            if self.store.full and self.status is None:
                self.why = self.why or "full"
            return more
        if fd == self.call.fileno() and self.status is None:
            self.why = self.why or "stopped"
        return False


def _spawn_restricted(job: Job, ends: list[tuple[int, int]]) -> int:
    """Start the command in a process that restricts itself first, and reports a failure of that on a pipe."""
    from handrail.processes.restrict import reset_signals, restrict  # noqa: PLC0415  # few commands need it

    assert job.restrictions
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            for fd, target in ends:
                os.dup2(fd, target)
            reset_signals(DEFAULTED)
            restrict(job.restrictions)
            os.execve(job.path, job.argv, job.env)  # noqa: S606  # that is what it is for
        except OSError as error:
            os.write(theirs, marshal.dumps((error.errno or 0, os.fsencode(error.filename or job.path))))
        finally:
            os._exit(127)
    os.close(theirs)
    with open(ours, "rb") as report:  # noqa: PTH123  # a descriptor
        failure = report.read()
    if failure:
        os.waitpid(pid, 0)
        number, name = marshal.loads(failure)  # noqa: S302  # from our own child
        raise OSError(number, os.strerror(number), os.fsdecode(name))
    return pid


def pidfd_of(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return NO_FD  # macOS, or a kernel before 5.3
