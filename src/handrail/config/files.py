"""Locks folders and replaces small files atomically."""

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TIMEOUT = 10.0


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """
    Hold the lock of a folder; other handrail processes wait.

    The folder itself is locked, so no lock file is left behind. The lock ends with the process.

    Raises:
        TimeoutError: another process held it for ten seconds.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"another process has been writing for {TIMEOUT:g} seconds") from None
            time.sleep(0.01)


def own_bytes(path: Path, most: int) -> bytes:
    """
    The first bytes of a file that only this user can write. Follows no link, waits for no pipe.

    Raises:
        OSError: it does not exist, or another user could have written it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022 or not stat.S_ISREG(status.st_mode):
            raise PermissionError("another user could have written it")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, *, mode: int) -> None:
    """Replace the content of a file. Readers see the old content or the new, never a part."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if os.geteuid() == 0 and path.exists():  # a file that root changes stays the property of its owner
                os.fchown(descriptor, path.stat().st_uid, path.stat().st_gid)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(beside, path)  # noqa: PTH105  # Path.replace is the same
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
