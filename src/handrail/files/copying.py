"""Moving bytes into files: written and hashed side by side, or copied without passing through the program."""

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from queue import Queue
from threading import Thread
from typing import TypeAlias

Piece: TypeAlias = bytes | memoryview

TOGETHER = 1024 * 1024
STEP = 4 * 1024 * 1024
CLONE = 0x40049409
"""Linux's request to let two files share their blocks (FICLONE)."""
NOT_COPIED_HERE = (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM, errno.EIO)


def fill(descriptor: int, pieces: Iterable[Piece]) -> tuple[str, int]:
    """
    Write all pieces; their SHA-256 and size.

    More than a little is hashed in a second thread, because hashing takes longer than writing.
    """
    gathered = _gathered(pieces)
    first = next(gathered, b"")
    if len(first) < TOGETHER:
        rest = [first, *gathered]
        for piece in rest:
            _write(descriptor, piece)
        return hashlib.sha256(b"".join(rest)).hexdigest(), sum(map(len, rest))
    waiting: Queue[Piece | None] = Queue(maxsize=4)
    sha = hashlib.sha256()

    def hash_all() -> None:
        while (part := waiting.get()) is not None:
            sha.update(part)

    thread = Thread(target=hash_all, name="handrail-hash", daemon=True)
    thread.start()
    size = 0
    try:
        for piece in chain((first,), gathered):
            waiting.put(piece)
            _write(descriptor, piece)
            size += len(piece)
    finally:
        waiting.put(None)
        thread.join()
    return sha.hexdigest(), size


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


def _write(descriptor: int, piece: Piece) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]


def _gathered(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Small pieces joined, large ones as they are."""
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
