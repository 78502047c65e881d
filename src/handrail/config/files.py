"""Writing a small file without losing anything: one writer at a time, the old content or the new, never a part."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """
    Hold the lock of a folder; other writers of ours wait.

    The folder itself is locked, so no file is left behind. Ends with the process, whatever becomes of it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
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
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(beside, path)  # noqa: PTH105  # Path.replace is the same
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
