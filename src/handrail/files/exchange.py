"""The steps of replacing a file: lock it, swap names, keep attributes, or overwrite it in place."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from handrail.errors import NotExchangedError, ToolError
from handrail.files.copying import copy
from handrail.lazy import lazy

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = lazy("ctypes")  # a new file needs no exchange

LOCK_SECONDS = 1.0
LOCK_STEP = 0.02
EXCHANGE = 2
LEFT_BEHIND = ("security.capability", "security.ima", "security.evm")
"""They vouch for the old content."""


@contextmanager
def file_lock(descriptor: int, shown: str) -> Iterator[None]:
    """Hold the lock of an open file, if its file system supports locks."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                break  # a file system without locks
            if time.monotonic() > until:
                raise ToolError(f"{shown!r} is locked by another program. It is as it was. Try again later.") from error
            time.sleep(LOCK_STEP)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def exchange(folder: int, one: str, other: str) -> None:
    """Swap the names of two files in a folder; raises OSError if that fails or the system cannot do it."""
    call = _renameat2()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(folder, os.fsencode(one), folder, os.fsencode(other), EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def _renameat2() -> Any:
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def keep_attributes(source: int, found: os.stat_result, target: int) -> None:
    """Give the new file the owner, mode and extended attributes of the old one."""
    new = os.fstat(target)
    try:
        if (new.st_uid, new.st_gid) != (found.st_uid, found.st_gid):
            os.fchown(target, found.st_uid, found.st_gid)
    except OSError as error:
        raise NotExchangedError(f"belongs to another user or group ({found.st_uid}:{found.st_gid})") from error
    os.fchmod(target, stat.S_IMODE(found.st_mode))
    if not hasattr(os, "listxattr"):  # macOS
        return
    try:
        names = os.listxattr(source)
    except OSError:
        return  # a file system without them
    for name in names:
        if name in LEFT_BEHIND:
            continue
        try:
            value = os.getxattr(source, name)
            os.setxattr(target, name, value)
        except OSError as error:
            if name.startswith(("user.", "system.posix_acl")):
                raise NotExchangedError(f"has the attribute {name!r}, which cannot be copied") from error


def rewrite(descriptor: int, source: int, old_size: int, new_size: int, kept: Callable[[], int]) -> os.stat_result:
    """Replace the bytes of the file by those of the source; `kept` opens the old content if that fails."""
    try:
        _reserve(descriptor, old_size, new_size)
        copy(source, descriptor, new_size)
        os.ftruncate(descriptor, new_size)
    except OSError:
        before = kept()
        try:
            copy(before, descriptor, old_size)
            os.ftruncate(descriptor, old_size)
        finally:
            os.close(before)
        raise
    return os.fstat(descriptor)


def _reserve(descriptor: int, old: int, new: int) -> None:
    """Reserve disk space before anything is overwritten."""
    if new <= old or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, old, new - old)
    except OSError as error:
        os.ftruncate(descriptor, old)
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
