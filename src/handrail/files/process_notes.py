"""Notes that a process locks as long as it lives: one whose lock is free was left by a process that was killed."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_NOTE = 65_536


@contextmanager
def lock_note(file: Path) -> Iterator[str]:
    """The text of a note whose process is gone, locked meanwhile; BlockingIOError if it lives."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield os.read(descriptor, MAX_NOTE).decode("utf-8", "surrogateescape")
    finally:
        os.close(descriptor)
