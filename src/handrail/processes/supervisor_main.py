"""
The small program between handrail and the commands that it runs. It makes sure that no command outlives its call.

    handrail ──► supervisor ──► reaper ──► command ──► whatever that starts
                    └──────► reapers (idle, wait for the next calls)

A reaper is forked before it is needed and serves one call at a time. Orphans of the command become its children (it is
a "subreaper"), so as long as anything of the call lives, the reaper has a child. It reports how the command ended only
when it has none left. When the other end of its socket is closed, because the call was given up or because handrail
was killed, it ends the command just the same. When a reaper is killed, its orphans fall to the supervisor; when the
supervisor is killed, its reapers finish their calls and end.

Where the kernel knows no subreapers (macOS), processes that leave both their parent and their group are not seen.

Starting and forking must be cheap: modules that are slow to import are not used here.
"""

import gc
import marshal
import os
import sys
import time
from _socket import SCM_RIGHTS, SOL_SOCKET, socket, socketpair
from select import POLLIN, poll

from handrail.processes.reaper import NO_FD, TICK, Job, Reaper, pidfd_of
from handrail.processes.tree import SIGKILL, children_of, kill_below, send
from handrail.processes.wire import COMMAND, HIGH, SWEEP, message, receive, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LEGACY = 3
"""The same as in `supervisor`, which would take long to import."""
TAKEN, IDLE = b"t", b"i"
READY_AT_FIRST = 8
"""How many reapers are forked before the first call: models ask for several commands at once, and forks take turns."""
LONG = 10.0
"""Seconds after which a reaper is not used again: there is nothing to be gained by it."""
NO_PROGRAM: "dict[str, Any]" = {
    "cwd": b"/",
    "path": b"",
    "argv": [b"-"],
    "env": {},
    "targets": [0],
    "timeout": None,
    "grace": 0.0,
    "linger": 0.0,
    "hello": 0.0,
    "quota": 1,
    "restrictions": None,
}
"""A job that cannot be started."""
PARENT_GONE = 3
"""The status of a spare that found the other end of the control socket closed."""
MOST_FDS = 1 << 16
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
DYING = 1.0
NO_PID = -1


def supervise(control: int) -> None:
    """Have idle reapers ready, several at first, until the other end of the control socket is closed."""
    os.closerange(LEGACY + 1, MOST_FDS)  # whatever we were started with is not the business of commands
    shared = _shares_legacy()
    gc.disable()  # there is nothing to collect, and pages that are not written to stay shared
    become_subreaper = _subreaper()
    become_subreaper()
    (inbox, outbox), (answers, answering) = os.pipe(), os.pipe()
    reapers = Reapers(inbox, answering)
    ready = READY_AT_FIRST
    while reapers.wanted:
        while len(reapers.idle) < ready and (pid := _fork()) != NO_PID:
            if not pid:
                become_subreaper()
                os.close(inbox)  # held by the supervisor alone, these two tell of its death
                os.close(answering)
                _close_all_above(outbox, answers)  # what tells of the death of other reapers
                _serve(control, outbox, answers, is_first=ready > 1)
            reapers.add(pid)
        ready = 1
        reapers.listen()
    reapers.drain()
    if shared and (left := os.pread(LEGACY, os.fstat(LEGACY).st_size, 0)):
        from handrail.processes.sandbox.placeholders import sweep  # noqa: PLC0415  # only those pay who had a sandbox

        sweep(map(os.fsdecode, left.split(b"\0")[:-1]))


def _shares_legacy() -> bool:
    """Whether handrail shares a file that lists what to sweep. No command inherits it."""
    try:
        os.set_inheritable(LEGACY, False)
    except OSError:
        return False
    return True


class Reapers:
    """Which reapers are idle and which are at work, as the supervisor knows it."""

    def __init__(self, inbox: int, answering: int) -> None:
        self.all: set[int] = set()
        self.idle: set[int] = set()
        self.wanted = True
        """Whether handrail is still there to give them work."""
        self._inbox = inbox
        self._answering = answering
        self._poll = poll()
        self._poll.register(inbox, POLLIN)
        self._pids: dict[int, int] = {}
        self._fallen = 0
        """How many were killed at work and have orphans that were not asked about yet."""

    def add(self, pid: int) -> None:
        """It waits for its first call."""
        self.all.add(pid)
        self.idle.add(pid)
        if (fd := pidfd_of(pid)) != NO_FD:
            self._pids[fd] = pid
            self._poll.register(fd, POLLIN)

    def listen(self) -> None:
        """Wait until one of them takes or ends a call, or dies."""
        tick = None if len(self._pids) == len(self.all) and self.idle else TICK * 1000
        for fd, _ in self._poll.poll(tick):
            if fd == self._inbox:
                news = os.read(fd, 5)
                self._handle(news[:1], int.from_bytes(news[1:], "big"))
            elif fd in self._pids:  # the news before it may have been of this death
                self._collect(self._pids[fd], 0)
        while not self._pids and self._collect(-1, os.WNOHANG):
            pass

    def drain(self) -> None:
        """No more work will come: wait for those that are at it, and end what fell to us."""
        while self._collect(-1, 0):
            if not self.all:
                kill_below(os.getpid())

    def _handle(self, news: bytes, pid: int) -> None:
        if news == TAKEN:
            self.idle.discard(pid)
        elif news == IDLE:
            self.idle |= {pid} & self.all  # it may have been killed since
        else:
            if pid in self.all:
                self._collect(pid, 0)
            elif not pid and not self._fallen:
                self._await_a_death()
            self._fallen = max(0, self._fallen - 1)
            self._sweep()
            os.write(self._answering, b".")

    def _await_a_death(self) -> None:
        """A reaper closed its socket and has not said who it is: it is about to die, if it has not yet."""
        deaths = poll()
        for fd in self._pids:
            deaths.register(fd, POLLIN)
        for fd, _ in deaths.poll(DYING * 1000):
            self._collect(self._pids[fd], 0)

    def _collect(self, pid: int, how: int) -> bool:
        """Collect the status of a child that ended. False = none has ended, or none is left."""
        try:
            pid, status = os.waitpid(pid, how)
        except ChildProcessError:
            return False
        if pid in self.all:
            self._fallen += pid not in self.idle and os.WIFSIGNALED(status)
            self.all.discard(pid)
            self.idle.discard(pid)
            self.wanted = self.wanted and os.waitstatus_to_exitcode(status) != PARENT_GONE
            for fd in [fd for fd, known in self._pids.items() if known == pid]:
                self._poll.unregister(fd)
                os.close(fd)
                del self._pids[fd]
        return pid > 0

    def _sweep(self) -> None:
        """End what fell to the supervisor, because its reaper was killed."""
        me = os.getpid()
        while strays := [pid for pid in children_of(me) if pid not in self.all]:
            for pid in strays:
                kill_below(pid)
            send(strays, SIGKILL)
            for pid in strays:
                self._collect(pid, 0)


def _fork() -> int:
    try:
        return os.fork()
    except BlockingIOError:
        return NO_PID  # there are too many processes; it is tried again when something has happened


def _subreaper() -> "Callable[[], object]":
    if sys.platform != "linux":
        return lambda: None
    from ctypes import CDLL  # noqa: PLC0415  # macOS need not load it

    prctl = CDLL(None).prctl
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # other programs of the user cannot look into reapers, nor debug them
    return lambda: prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _serve(control: int, outbox: int, answers: int, *, is_first: bool) -> None:
    """The life of a reaper: one call after the other; never returns. Those after the first come when others work."""
    code = 1
    try:
        if is_first:
            _rehearse()
            _close_all_above(outbox, answers)
        while True:
            kind, fds = receive(socket(fileno=control))
            if not kind:
                code = PARENT_GONE
                return
            _report(outbox, TAKEN, os.getpid())
            began = time.monotonic()
            call = socket(fileno=fds[0])
            request = marshal.loads(whole(call))  # noqa: S302  # from our own parent
            if kind == SWEEP:
                if not (_report(outbox, SWEEP, *request) and os.read(answers, 1)):
                    return
            else:
                Reaper(call, Job(request[0]), fds[1:]).run()
            call.close()
            if time.monotonic() - began > LONG:
                code = 0
                return
            os.chdir("/")
            _close_all_above(outbox, answers)  # whatever is left of the call
            if not _report(outbox, IDLE, os.getpid()):
                return
    finally:
        os._exit(code)


def _rehearse() -> None:
    """
    Serve a call whose program is not there.

    What was forked gets its memory page by page as it comes to use it, which takes as long as all else that a reaper
    does before the command runs. The first call shall not wait for it.
    """
    try:
        ours, theirs = socketpair()
        end = theirs.fileno()
        handed = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (end, 1, 1))
        ours.sendmsg([COMMAND], [(SOL_SOCKET, SCM_RIGHTS, handed)])
        ours.sendall(message(NO_PROGRAM))
        _, fds = receive(theirs)
        call = socket(fileno=fds[0])
        reaper = Reaper(call, Job(marshal.loads(whole(call))[0]), fds[1:])  # noqa: S302  # from ourselves
        reaper.run()
        reaper.watch()
        call.close()
        ours.close()
        os.close(end)
    except OSError:
        return  # too few descriptors, for example; a real call says it


def _close_all_above(*kept: int) -> None:
    os.closerange(max(kept) + 1, 8 * HIGH)


def _report(outbox: int, news: bytes, pid: int) -> bool:
    """Report to the supervisor. False = it was killed; a call that was taken is served nevertheless."""
    try:
        os.write(outbox, news + pid.to_bytes(4, "big"))
    except BrokenPipeError:
        return False
    return True
