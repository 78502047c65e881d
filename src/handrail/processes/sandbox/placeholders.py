"""
Names that are kept occupied while commands run, so that no command in the sandbox can create what is protected.

A mount needs something to be mounted on. For a protected path that is missing this is an empty folder (git does not
see it, and removing it can never take anything with it), or, where git would stumble over a folder, a file that means
the same as no file. They go a moment after the last command has ended: each user holds a shared lock, and the one that
gets the exclusive lock may remove it. If this program is killed, the supervisor does that when the commands have ended.
The mode marks them, so that we take them for absent, and that the next command cleans up if the supervisor was killed
as well.

Outside the sandbox they are ordinary folders: one that something was put into stays.
"""

import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

from handrail.processes.sandbox.paths import GIT_NEUTRAL
from handrail.processes.sandbox.placeholder_marks import FILE_MODE, FOLDER_MODE, stands_in
from handrail.processes.supervisor import SUPERVISOR

OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LINGER = 1.0
"""Seconds, because the next command often comes soon, and making and removing costs more than keeping."""


class Placeholders:
    """The placeholders of the commands of one sandbox. Use it from any thread."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self._users = 0
        self._until = 0.0
        self._tidying = False
        self._lock = threading.Lock()

    def take(self, paths: Iterable[str]) -> frozenset[str]:
        """Keep these names occupied until `release`; the answer is those of them that are folders."""
        with self._lock:
            wanted = list(paths)
            SUPERVISOR.remember(wanted)
            for path in wanted:
                self._keep(path)
            self._users += 1
            return frozenset(path for path in self._held if _name(path) not in GIT_NEUTRAL)

    def release(self) -> None:
        """One command less needs them."""
        with self._lock:
            self._users -= 1
            self._until = time.monotonic() + LINGER
            if self._users == 0 and self._held and not self._tidying:
                self._tidying = True
                threading.Thread(target=self._tidy, name="handrail sandbox tidying", daemon=True).start()

    def close(self) -> None:
        """Remove at once what no other process holds."""
        with self._lock:
            self._drop()

    def _keep(self, path: str) -> None:
        held = self._held.pop(path, None)
        if held is not None and not _same(path, held):
            os.close(held)
            held = None
        held = _hold(path) if held is None else held
        if held is not None:
            self._held[path] = held

    def _tidy(self) -> None:
        """Wait until no command has needed them for a while. One thread does that for many commands."""
        while True:
            with self._lock:
                left = self._until - time.monotonic()
                if self._users or left <= 0:
                    self._tidying = False  # a command that still runs begins again when it ends
                    if not self._users:
                        self._drop()
                    return
            time.sleep(left)

    def _drop(self) -> None:
        while self._held:
            path, held = self._held.popitem()
            try:
                _remove(path, held)
            finally:
                os.close(held)


def placeholder(path: str) -> bool:
    """Whether what lies there is one of ours."""
    try:
        return stands_in(os.lstat(path).st_mode)
    except OSError:
        return False


def real_kind(path: str) -> int:
    """The file type of a path; 0 when there is nothing, or only something that keeps the name occupied."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return 0
    return 0 if stands_in(mode) else stat.S_IFMT(mode)


def sweep(paths: Iterable[str]) -> None:
    """Remove what is left of these now that their program is gone. What others still hold is theirs to remove."""
    for path in paths:
        with suppress(OSError):
            held = os.open(path, OPEN)
            try:
                _remove(path, held)
            finally:
                os.close(held)


def _hold(path: str) -> int | None:
    """A shared lock on the placeholder; None when it is not ours, or when our rights do not allow to make it."""
    while True:
        try:
            _make(path)
            held = os.open(path, OPEN)
        except FileNotFoundError:
            if not os.path.isdir(path.rpartition("/")[0]):  # noqa: PTH112
                raise
            continue  # its last holder has just removed it
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                return None
            raise
        fcntl.flock(held, fcntl.LOCK_SH)
        if _same(path, held) and placeholder(path):
            return held
        os.close(held)
        if not placeholder(path) and os.path.lexists(path):
            return None


def _make(path: str) -> None:
    content = GIT_NEUTRAL.get(_name(path))
    with suppress(FileExistsError):
        if content is None:
            os.mkdir(path, FOLDER_MODE)  # noqa: PTH102 - beside the other calls on plain names
            return
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
        try:
            os.write(file, content)
        finally:
            os.close(file)


def _remove(path: str, held: int) -> None:
    # let go first: of several processes that leave at once, the last one then holds it alone
    fcntl.flock(held, fcntl.LOCK_UN)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # another call is still using it, and removes it
    if not _same(path, held) or not placeholder(path):
        return
    try:
        if _name(path) in GIT_NEUTRAL:
            os.unlink(path)  # noqa: PTH108
        else:
            os.rmdir(path)  # noqa: PTH106
    except OSError:
        with suppress(OSError):  # it is not empty, and is an ordinary folder from now on
            os.fchmod(held, os.fstat(held).st_mode & 0o777)


def _same(path: str, held: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(held))
    except OSError:
        return False


def _name(path: str) -> str:
    return path.rpartition("/")[2]
