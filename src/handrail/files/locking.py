"""A lock that keeps two handrail processes from replacing one file at once."""

import errno
import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from handrail.errors import ToolError

SECONDS = 1.0
STEP = 0.02


@contextmanager
def file_lock(descriptor: int, shown: str) -> Iterator[None]:
    """Hold the lock of an open file, if its file system supports locks."""
    until = time.monotonic() + SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                break  # a file system without locks
            if time.monotonic() > until:
                raise ToolError(f"{shown!r} is locked by another program. It is as it was. Try again later.") from error
            time.sleep(STEP)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
