"""Two files of a folder exchange their names, in one step. Linux only; elsewhere callers copy."""

import ctypes
import errno
import os
from functools import cache
from typing import Any

EXCHANGE = 2


def exchange(folder: int, one: str, other: str) -> None:
    """
    Raises:
        OSError: they did not; ENOSYS or EINVAL where system or file system cannot do it.
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
