"""
The small program between us and the commands we run. It sees to it that none of them outlives its call.

    handrail ──► nursery ──► keeper ──► command ──► whatever that starts
                    └──────► keeper (idle, waits for the next call)

A keeper is forked before it is needed and serves one call at a time. Orphans of the command become its children (it is
a "subreaper"), so as long as anything of the call lives, the keeper has a child. It tells how the command ended only
when it has none left. When the other end of its socket is closed, because the call was given up or because handrail
was killed, it ends the command just the same. If somebody kills a keeper, its orphans fall to the nursery; if somebody
kills the nursery, its keepers finish their calls and end.

Where the kernel knows no subreapers (macOS), processes that leave both their parent and their group are not seen.

Starting and forking must be cheap: modules that are slow to import are not used here.
"""

import gc
import marshal
import os
import sys
import time
from _socket import socket
from select import POLLIN, poll

from handrail.processes.keeper import NO_FD, TICK, Job, Keeper, pidfd_of
from handrail.processes.tree import SIGKILL, children_of, kill_below, send
from handrail.processes.wire import HIGH, SWEEP, received, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LEGACY = 3
"""The same as in `nursery`, which would take long to import."""
TAKEN, IDLE = b"t", b"i"
LONG = 10.0
"""Seconds after which a keeper is not used again: there is nothing to be gained by it."""
NOBODY_LEFT = 3
"""The status of a spare that found the other end of the control socket closed."""
MOST_FDS = 1 << 16
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
DYING = 1.0
NO_PID = -1


def nursery(control: int) -> None:
    """Have at least one idle keeper ready until the other end of the control socket is closed."""
    os.closerange(LEGACY + 1, MOST_FDS)  # whatever we were started with is not the business of commands
    shared = _shares_legacy()
    gc.disable()  # there is nothing to collect, and pages that are not written to stay shared
    become_subreaper = _subreaper()
    become_subreaper()
    (inbox, outbox), (answers, answering) = os.pipe(), os.pipe()
    keepers = Keepers(inbox, answering)
    while keepers.wanted:
        if not keepers.idle and (pid := _forked()) != NO_PID:
            if not pid:
                become_subreaper()
                os.close(inbox)  # held by the nursery alone, these two tell of its death
                os.close(answering)
                _serve(control, outbox, answers)
            keepers.born(pid)
        keepers.listen()
    keepers.see_them_out()
    if shared and (left := os.pread(LEGACY, os.fstat(LEGACY).st_size, 0)):
        from handrail.processes.sandbox.occupy import sweep  # noqa: PLC0415  # only those pay who had a sandbox

        sweep(map(os.fsdecode, left.split(b"\0")[:-1]))


def _shares_legacy() -> bool:
    """Whether there is a file in which handrail says what it leaves. No command inherits it."""
    try:
        os.set_inheritable(LEGACY, False)
    except OSError:
        return False
    return True


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
        self._fallen = 0
        """How many were killed at their work whose orphans nobody has asked about yet."""

    def born(self, pid: int) -> None:
        """It waits for its first call."""
        self.all.add(pid)
        self.idle.add(pid)
        if (fd := pidfd_of(pid)) != NO_FD:
            self._pids[fd] = pid
            self._ears.register(fd, POLLIN)

    def listen(self) -> None:
        """Wait until one of them takes or ends a call, or dies."""
        tick = None if len(self._pids) == len(self.all) and self.idle else TICK * 1000
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
            elif not pid and not self._fallen:
                self._await_a_death()
            self._fallen = max(0, self._fallen - 1)
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
            self._fallen += pid not in self.idle and os.WIFSIGNALED(status)
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


def _forked() -> int:
    try:
        return os.fork()
    except BlockingIOError:
        return NO_PID  # there are too many processes; it is tried again when something has happened


def _subreaper() -> "Callable[[], object]":
    if sys.platform != "linux":
        return lambda: None
    from ctypes import CDLL  # noqa: PLC0415  # macOS need not load it

    prctl = CDLL(None).prctl
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # other programs of the user cannot look into keepers, nor debug them
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
                if not (_report(outbox, SWEEP, *said) and os.read(answers, 1)):
                    return
            else:
                Keeper(call, Job(**said[0]), fds[1:]).run()
            call.close()
            if time.monotonic() - began > LONG:
                code = 0
                return
            os.chdir("/")
            os.closerange(max(outbox, answers) + 1, 2 * HIGH)  # whatever is left of the call
            if not _report(outbox, IDLE, os.getpid()):
                return
    finally:
        os._exit(code)


def _report(outbox: int, news: bytes, pid: int) -> bool:
    """Tell the nursery. False = somebody killed it; a call that was taken is served nevertheless."""
    try:
        os.write(outbox, news + pid.to_bytes(4, "big"))
    except BrokenPipeError:
        return False
    return True
