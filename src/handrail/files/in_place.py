"""Writing over a file's own bytes, for a file that cannot be exchanged. If that fails, what was there is put back."""

import errno
import os
from collections.abc import Callable

from handrail.files.copying import copy


def rewrite(descriptor: int, source: int, old_size: int, new_size: int, kept: Callable[[], int]) -> os.stat_result:
    """
    Put the bytes of the source in place of those of the file. `kept` opens a copy of what it holds now.

    Raises:
        OSError: it cannot be written; it holds what it held.
    """
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
    """Get the room for what is added before anything is written over."""
    if new <= old or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, old, new - old)
    except OSError as error:
        os.ftruncate(descriptor, old)
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
