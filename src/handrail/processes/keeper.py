"""
The small program between us and the commands we run. It sees to it that none of them outlives its call.

    handrail ──► nursery ──► keeper ──► command ──► whatever that starts
                    └──────► keeper (idle, waits for the next call)

A keeper is forked before it is needed and serves one call at a time. Orphans of the command become its children (it is
a "subreaper"), so as long as anything of the call lives, the keeper has a child. It tells how the command ended only
when it has none left. When the other end of its socket is closed, because the call was given up or because handrail
was killed, it ends the command just the same. If somebody kills a keeper, its orphans fall to the nursery.

Where the kernel knows no subreapers (macOS), processes that leave both their parent and their group are not seen.

Starting and forking must be cheap: modules that are slow to import are not used here.
"""

import gc
import marshal
import os
import sys
import time
from _socket import SCM_RIGHTS, SOL_SOCKET, socket
from fcntl import F_DUPFD_CLOEXEC, fcntl
from select import POLLIN, poll

from handrail.processes.tree import SIGCONT, SIGKILL, SIGTERM, children_of, descendants, kill_below, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

COMMAND, SWEEP = b"c", b"s"
TAKEN, IDLE = b"t", b"i"
LONG = 10.0
"""Seconds after which a keeper is not used again: there is nothing to be gained by it."""
NOBODY_LEFT = 3
"""The status of a spare that found the other end of the control socket closed."""
MAX_FDS = 32
MOST_FDS = 1 << 16
HIGH = 200
"""Descriptors are moved up here when they arrive, so that any low number is free for the command."""
CHUNK = 1 << 20
F_SETPIPE_SZ = 1031
PR_SET_CHILD_SUBREAPER = 36
DEFAULTED = (2, 13, 25)
"""SIGINT, SIGPIPE and SIGXFSZ, which Python sets to something of its own."""
TICK, QUICK = 0.5, 0.002
AT_ONCE = 0.003
DYING = 1.0
MUCH, PAUSE = 4096, 0.0005
NO_FD = -1
RUNS, LINGERS, ENDS, IS_KILLED = range(4)


# The nursery


def nursery(control: int) -> None:
    """Have at least one idle keeper ready until the other end of the control socket is closed."""
    os.closerange(3, MOST_FDS)  # whatever we were started with is not the business of commands
    gc.disable()  # there is nothing to collect, and pages that are not written to stay shared
    become_subreaper = _subreaper()
    become_subreaper()
    (inbox, outbox), (answers, answering) = os.pipe(), os.pipe()
    keepers = Keepers(inbox, answering)
    while keepers.wanted:
        if not keepers.idle:
            pid = os.fork()
            if not pid:
                become_subreaper()
                _serve(control, outbox, answers)
            keepers.born(pid)
        keepers.listen()
    keepers.see_them_out()


class Keepers:
    """Who is idle and who is not, as the nursery knows it."""

    def __init__(self, inbox: int, answering: int) -> None:
        self.all: set[int] = set()
        self.idle: set[int] = set()
        self.wanted = True
        """Whether anybody is there to give them work."""
        self._inbox = inbox
        self._answering = answering
        self._ears = poll()
        self._ears.register(inbox, POLLIN)
        self._pids: dict[int, int] = {}

    def born(self, pid: int) -> None:
        """It waits for its first call."""
        self.all.add(pid)
        self.idle.add(pid)
        if (fd := _pidfd(pid)) != NO_FD:
            self._pids[fd] = pid
            self._ears.register(fd, POLLIN)

    def listen(self) -> None:
        """Wait until one of them takes or ends a call, or dies."""
        tick = None if len(self._pids) == len(self.all) else TICK * 1000
        for fd, _ in self._ears.poll(tick):
            if fd == self._inbox:
                news = os.read(fd, 5)
                self._heard(news[:1], int.from_bytes(news[1:], "big"))
            else:
                self._bury(self._pids[fd], 0)
        while not self._pids and self._bury(-1, os.WNOHANG):
            pass

    def see_them_out(self) -> None:
        """Nobody will give them work any more: wait for those that are at it, and end what fell to us."""
        while self._bury(-1, 0):
            if not self.all:
                kill_below(os.getpid())

    def _heard(self, news: bytes, pid: int) -> None:
        if news == TAKEN:
            self.idle.discard(pid)
        elif news == IDLE:
            self.idle |= {pid} & self.all  # it may have been killed since
        else:
            if pid in self.all:
                self._bury(pid, 0)
            elif not pid:
                self._await_a_death()
            self._sweep()
            os.write(self._answering, b".")

    def _await_a_death(self) -> None:
        """A keeper closed its socket and has not said who it is: it is about to die, if it has not yet."""
        deaths = poll()
        for fd in self._pids:
            deaths.register(fd, POLLIN)
        for fd, _ in deaths.poll(DYING * 1000):
            self._bury(self._pids[fd], 0)

    def _bury(self, pid: int, how: int) -> bool:
        """Take note of an end. False = nobody ended, or nobody is left."""
        try:
            pid, status = os.waitpid(pid, how)
        except ChildProcessError:
            return False
        if pid in self.all:
            self.all.discard(pid)
            self.idle.discard(pid)
            self.wanted = self.wanted and os.waitstatus_to_exitcode(status) != NOBODY_LEFT
            for fd in [fd for fd, known in self._pids.items() if known == pid]:
                self._ears.unregister(fd)
                os.close(fd)
                del self._pids[fd]
        return pid > 0

    def _sweep(self) -> None:
        """End what fell to the nursery, because its keeper was killed."""
        me = os.getpid()
        while strays := [pid for pid in children_of(me) if pid not in self.all]:
            for pid in strays:
                kill_below(pid)
            send(strays, SIGKILL)
            for pid in strays:
                self._bury(pid, 0)


def _subreaper() -> "Callable[[], object]":
    if sys.platform != "linux":
        return lambda: None
    from ctypes import CDLL  # noqa: PLC0415  # macOS need not load it

    prctl = CDLL(None).prctl
    return lambda: prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _serve(control: int, outbox: int, answers: int) -> None:
    """The life of a keeper: one call after the other; never returns."""
    code = 1
    try:
        while True:
            kind, fds = received(socket(fileno=control))
            if not kind:
                code = NOBODY_LEFT
                return
            _report(outbox, TAKEN, os.getpid())
            began = time.monotonic()
            call = socket(fileno=fds[0])
            said = marshal.loads(whole(call))  # noqa: S302  # from our own parent
            if kind == SWEEP:
                _report(outbox, SWEEP, *said)
                os.read(answers, 1)
            else:
                Keeper(call, Job(**said[0]), fds[1:]).run()
            call.close()
            if time.monotonic() - began > LONG:
                code = 0
                return
            os.chdir("/")
            os.closerange(max(outbox, answers) + 1, 2 * HIGH)  # whatever is left of the call
            _report(outbox, IDLE, os.getpid())
    finally:
        os._exit(code)


def _report(outbox: int, news: bytes, pid: int) -> None:
    os.write(outbox, news + pid.to_bytes(4, "big"))


# What is said on sockets


def received(control: socket) -> tuple[bytes, list[int]]:
    """One job and the descriptors that came with it, none of which the command inherits by accident."""
    kind, data, _, _ = control.recvmsg(1, 4 * MAX_FDS + 64)
    raw = b"".join(part for level, sort, part in data if (level, sort) == (SOL_SOCKET, SCM_RIGHTS))
    fds: list[int] = []
    for at in range(0, len(raw) - 3, 4):
        fd = int.from_bytes(raw[at : at + 4], sys.byteorder)
        fds.append(fcntl(fd, F_DUPFD_CLOEXEC, HIGH))
        os.close(fd)
    control.detach()
    return kind, fds


def whole(call: socket) -> bytes:
    """A message with its length before it."""
    size = int.from_bytes(exactly(call, 8), "big")
    return exactly(call, size)


def exactly(call: socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = call.recv(min(size - len(data), CHUNK))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def message(*parts: "Any") -> bytes:
    """A message for the other side, which runs the same Python."""
    data = marshal.dumps(parts, 2)
    return len(data).to_bytes(8, "big") + data


# The keeper


class Job:
    """What to start and how long it may go on, as it comes over the socket."""

    __slots__ = ("argv", "cwd", "env", "grace", "linger", "path", "quota", "restrictions", "targets", "timeout")

    def __init__(
        self,
        *,
        path: bytes,
        argv: list[bytes],
        cwd: bytes,
        env: dict[bytes, bytes],
        targets: list[int],
        timeout: float | None,
        grace: float,
        linger: float,
        quota: int | None,
        restrictions: "dict[str, Any] | None",
    ) -> None:
        self.path = path
        self.argv = argv
        self.cwd = cwd
        self.env = env
        self.targets = targets
        """The numbers that the descriptors after the store have in the command."""
        self.timeout = timeout
        self.grace = grace
        self.linger = linger
        self.quota = quota
        """How many bytes of output are kept in the store. None = there is no store."""
        self.restrictions = restrictions
        """What the command's process does to itself before it becomes the command."""


class Keeper:
    """
    Starts one command, keeps its output if that is wanted, and ends whatever is left of it.

        runs ──► lingers (it is over, but others of its call live) ──► ends (SIGTERM) ──► is killed, until none is left
          └───────────── timeout, given up, or too much output ───────────┘
    """

    def __init__(self, call: socket, job: Job, fds: list[int]) -> None:
        self.call = call
        self.job = job
        self.store = None if job.quota is None else Store(fds.pop(0), job.quota)
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
        self.pidfd = _pidfd(self.main)
        self.watch()
        if self.store:
            self.store.drain()
        kept = (self.store.stored, self.store.lost, self.store.trouble) if self.store else (0, 0, 0)
        self.tell("ended", self.status or 0, self.why, *kept)

    def greet(self) -> None:
        """Tell that the command runs. Of one that is over at once only the end is told, which spares a wake-up."""
        if not self.greeted:
            self.greeted = True
            self.tell("started", self.main, os.getpid())

    def tell(self, *parts: "Any") -> None:
        try:
            self.call.sendall(message(*parts))
        except OSError:
            return  # nobody is interested any more

    def spawn(self) -> int:
        job = self.job
        os.chdir(job.cwd)
        free = max(HIGH, *job.targets) + 1
        if free > HIGH + 1:
            self.fds = [fcntl(fd, F_DUPFD_CLOEXEC, free) for fd in self.fds]
        ends = [(self.store.end, 1), (self.store.end, 2)] if self.store else []
        ends += zip(self.fds, job.targets, strict=True)
        if job.restrictions:
            pid = _restricted(job, ends)
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
        """Until no process of the call is left."""
        ears = poll()
        for fd in (self.call.fileno(), self.pidfd, self.store.pipe if self.store else NO_FD):
            if fd != NO_FD:
                ears.register(fd, POLLIN)
        now = time.monotonic()
        hello = now + AT_ONCE
        phase, until = RUNS, float("inf") if self.job.timeout is None else now + self.job.timeout
        while self.reap():
            if phase == RUNS and self.status is not None:
                phase, until = LINGERS, now + self.job.linger
            if now >= until or (self.why and phase < ENDS):
                phase, until = self.escalate(phase, now)
            pause = TICK if phase == RUNS and self.pidfd != NO_FD and self.greeted else QUICK
            for fd, _ in ears.poll(max(0.0, min(pause, until - now)) * 1000):
                if not self.hear(fd):
                    ears.unregister(fd)
            now = time.monotonic()
            if now >= hello:
                self.greet()

    def reap(self) -> bool:
        """Take note of those that ended. False = nobody is left."""
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
        """Something happened there. False = nothing more will."""
        if self.store and fd == self.store.pipe:
            before = self.store.stored
            more = self.store.take()
            if self.store.stored - before > MUCH:
                time.sleep(PAUSE)  # let the pipe fill up: large moves are cheap, many small ones are not
            if self.store.full and self.status is None:
                self.why = self.why or "full"
            return more
        if fd == self.call.fileno() and self.status is None:
            self.why = self.why or "stopped"
        return False


def _restricted(job: Job, ends: list[tuple[int, int]]) -> int:
    """The command in a process that restricts itself first. It says on a pipe why it could not, or closes it."""
    from handrail.processes.restrict import restrict, usual_signals  # noqa: PLC0415  # few commands need it

    assert job.restrictions
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            for fd, target in ends:
                os.dup2(fd, target)
            usual_signals(DEFAULTED)
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


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return NO_FD  # macOS, or a kernel before 5.3


class Store:
    """A file that gets what comes out of a pipe, up to a number of bytes. The rest is counted and dropped."""

    def __init__(self, file: int, quota: int) -> None:
        self.file = file
        self.room = quota
        self.pipe, self.end = os.pipe()
        os.set_blocking(self.pipe, False)
        if sys.platform == "linux":
            try:  # noqa: SIM105  # contextlib is slow to import
                fcntl(self.pipe, F_SETPIPE_SZ, CHUNK)
            except PermissionError:
                pass  # the user has many large pipes already
        self.stored = self.lost = self.trouble = 0
        self.moves = self.spliced if hasattr(os, "splice") else self.copied

    @property
    def full(self) -> bool:
        return not self.room

    def take(self) -> bool:
        """Move what is there now. False = there will never be more."""
        try:
            if self.full or self.trouble:
                count = len(os.read(self.pipe, CHUNK))
                self.lost += count
                return count > 0
            count = self.moves(min(CHUNK, self.room))
        except BlockingIOError:
            return True
        self.stored += count
        self.room -= count
        return count > 0 or bool(self.trouble)

    def spliced(self, most: int) -> int:
        try:
            return os.splice(self.pipe, self.file, most)
        except BlockingIOError:
            raise
        except OSError:
            self.moves = self.copied  # not every file system takes pages from a pipe; it also tells what is wrong
            return self.copied(most)

    def copied(self, most: int) -> int:
        data = os.read(self.pipe, most)
        done = 0
        try:
            while done < len(data):
                done += os.write(self.file, data[done:])
        except OSError as error:
            self.trouble = error.errno or 0
            self.lost += len(data) - done
        return done

    def drain(self) -> None:
        """What is still in the pipe, now that nobody writes to it any more."""
        while True:
            before = self.stored + self.lost
            if not self.take() or self.stored + self.lost == before:
                return


if __name__ == "__main__":
    nursery(0)
