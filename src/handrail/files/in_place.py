"""Overwrites a file in place, for files that cannot be exchanged. If that fails, the old content is put back."""

import errno
import os
from collections.abc import Callable

from handrail.files.copying import copy


def rewrite(descriptor: int, source: int, old_size: int, new_size: int, kept: Callable[[], int]) -> os.stat_result:
    """
    Replace the bytes of the file by those of the source. `kept` opens a copy of the old content.

    Raises:
        OSError: it cannot be written; it has its old content.
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
    """Reserve disk space before anything is overwritten."""
    if new <= old or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, old, new - old)
    except OSError as error:
        os.ftruncate(descriptor, old)
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
