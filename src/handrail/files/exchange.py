"""Swaps the names of two files in one atomic step. Linux only; elsewhere callers copy."""

import ctypes
import errno
import os
from functools import cache
from typing import Any

EXCHANGE = 2


def exchange(folder: int, one: str, other: str) -> None:
    """
    Swap the names of two files in a folder.

    Raises:
        OSError: it failed; ENOSYS or EINVAL where the system or file system does not support it.
    """
    call = _renameat2()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(folder, os.fsencode(one), folder, os.fsencode(other), EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def _renameat2() -> Any:
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
