"""
Names that are kept occupied while a command runs, so that nobody in the sandbox can create what is protected.

A mount needs something to be mounted on. For a protected path that is missing this is an empty folder (git does not
see it, and removing it can never take anything with it), or, where git would stumble over a folder, a file that means
the same as no file. Each is made for the time of a call and removed by the last one who uses it: everyone holds a
shared lock, and who gets the exclusive one may remove it. The mode marks it, so that the next call cleans up what a
killed program left behind.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from handrail.processes.sandbox.places import GIT_NEUTRAL

FOLDER_MODE = 0o1555
FILE_MODE = 0o1444
"""Not writable, and with a bit that nobody sets on a file or an empty folder of their own."""


class Occupied:
    """The placeholders of one call."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}

    @property
    def folders(self) -> frozenset[str]:
        """Those that are folders; the files are covered like any other file that is there."""
        return frozenset(path for path in self.held if Path(path).name not in GIT_NEUTRAL)

    def take(self, paths: Iterable[str]) -> None:
        """Make what is missing and share what another call has made."""
        for path in paths:
            held = _hold(path)
            if held is not None:
                self.held[path] = held

    def release(self) -> None:
        """Remove what nobody else holds. Does nothing the second time."""
        while self.held:
            path, held = self.held.popitem()
            try:
                _remove(path, held)
            finally:
                os.close(held)


def placeholder(path: str) -> bool:
    """Whether what lies there is one of ours."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return (stat.S_ISDIR(mode) and stat.S_IMODE(mode) == FOLDER_MODE) or (
        stat.S_ISREG(mode) and stat.S_IMODE(mode) == FILE_MODE
    )


def _hold(path: str) -> int | None:
    """A shared lock on the placeholder; None when it is not ours, or when nobody with our rights could make it."""
    while True:
        try:
            _make(path)
            held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
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
    content = GIT_NEUTRAL.get(Path(path).name)
    with suppress(FileExistsError):
        if content is None:
            os.mkdir(path, FOLDER_MODE)  # noqa: PTH102 - beside the other calls on plain names
            return
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
        try:
            os.write(made, content)
        finally:
            os.close(made)


def _remove(path: str, held: int) -> None:
    # let go first: of several who leave at once, the last one then finds nobody else
    fcntl.flock(held, fcntl.LOCK_UN)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # another call is still using it, and removes it
    if not _same(path, held) or not placeholder(path):
        return
    with suppress(OSError):  # a folder that is not empty any more is not ours to remove
        if Path(path).name in GIT_NEUTRAL:
            os.unlink(path)  # noqa: PTH108
        else:
            os.rmdir(path)  # noqa: PTH106


def _same(path: str, held: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(held))
    except OSError:
        return False
