"""Writing a small file without losing anything: one writer at a time, the old content or the new, never a part."""

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 10.0


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """
    Hold the lock of a folder; other writers of ours wait.

    The folder itself is locked, so no file is left behind. Ends with the process, whatever becomes of it.

    Raises:
        TimeoutError: somebody else held it for ten seconds.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"another process has been writing for {PATIENCE:g} seconds") from None
            time.sleep(0.01)


def own_bytes(path: Path, most: int) -> bytes:
    """
    What a file of ours holds, up to so many bytes. No link is followed, no pipe waited for.

    Raises:
        OSError: there is none, or somebody else could have written it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022 or not stat.S_ISREG(status.st_mode):
            raise PermissionError("somebody else could have written it")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, *, mode: int) -> None:
    """Put these bytes in the place of a file. Whoever reads meanwhile sees the old content or the new."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            _keep_owner(descriptor, path)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(beside, path)  # noqa: PTH105  # Path.replace is the same
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _keep_owner(descriptor: int, path: Path) -> None:
    """Root may change somebody's file without taking it away from them."""
    if os.geteuid() == 0 and path.exists():
        status = path.stat()
        os.fchown(descriptor, status.st_uid, status.st_gid)
