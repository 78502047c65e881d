"""Writes, hashes and copies bytes of files."""

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Thread
from typing import TypeAlias

from handrail.errors import HandrailError

Piece: TypeAlias = bytes | memoryview
Pieces: TypeAlias = Callable[[], Iterator[Piece]]
"""Returns the same pieces at every call."""

TOGETHER = 1024 * 1024
STEP = 4 * 1024 * 1024
CLONE = 0x40049409
"""Linux's request to let two files share their blocks (FICLONE)."""
NOT_COPIED_HERE = (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM, errno.EIO)


class PieceHasher:
    """The SHA-256 of pieces; large contents are hashed in a thread while the caller goes on."""

    def __init__(self, pieces: Pieces, size: int) -> None:
        self._pieces = pieces
        self._sha = hashlib.sha256()
        self._error: Exception | None = None
        self._done = False
        self._thread: Thread | None = None
        if size > TOGETHER:
            self._thread = Thread(target=self._run, name="handrail-hash", daemon=True)
            self._thread.start()

    def digest(self) -> str:
        """Wait for the hash; raises what reading the pieces raised."""
        if self._thread is not None:
            self._thread.join()
        elif not self._done:
            self._run()
        if self._error is not None:
            raise self._error
        return self._sha.hexdigest()

    def _run(self) -> None:
        try:
            for piece in join_small(self._pieces()):
                self._sha.update(piece)
        except (OSError, HandrailError) as error:
            self._error = error
        self._done = True


def write_pieces(descriptor: int, pieces: Pieces) -> int:
    """Write all pieces and return the number of bytes."""
    size = 0
    for piece in join_small(pieces()):
        view = memoryview(piece)
        size += len(view)
        while view:
            view = view[os.write(descriptor, view) :]
    return size


def digest(descriptor: int) -> str:
    """The SHA-256 of everything in an open file."""
    sha = hashlib.sha256()
    at = 0
    while piece := os.pread(descriptor, STEP, at):
        sha.update(piece)
        at += len(piece)
    return sha.hexdigest()


def copy(source: int, target: int, size: int) -> None:
    """Copy the first `size` bytes to the beginning of the target, sharing blocks where the file system can."""
    with suppress(OSError):
        if os.fstat(target).st_size == 0 and os.fstat(source).st_size == size:
            fcntl.ioctl(target, CLONE, source)
            return
    at = 0
    while at < size:
        try:
            done = os.copy_file_range(source, target, size - at, at, at)
        except (AttributeError, OSError) as error:  # macOS has no such call
            if isinstance(error, OSError) and error.errno not in NOT_COPIED_HERE:
                raise
            done = 0
        if not done:
            break
        at += done
    while at < size:
        piece = os.pread(source, min(STEP, size - at), at)
        if not piece:
            raise OSError(errno.ESTALE, "the file became shorter while it was copied")
        at += os.pwrite(target, piece, at)


def join_small(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join small pieces and keep large ones as they are."""
    small: list[Piece] = []
    size = 0
    for piece in pieces:
        if len(piece) >= TOGETHER:
            if small:
                yield b"".join(small)
                small, size = [], 0
            yield piece
            continue
        small.append(piece)
        size += len(piece)
        if size >= TOGETHER:
            yield b"".join(small)
            small, size = [], 0
    if small:
        yield b"".join(small)
