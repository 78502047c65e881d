"""Reads files that a project, and so an attacker, may have put in place: never waits for a pipe or a device."""

import os
import stat
from pathlib import Path


def read_small(path: str | Path, most: int) -> bytes | None:
    """
    The first bytes of a regular file; None if it is something else.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)
