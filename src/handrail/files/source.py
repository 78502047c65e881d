"""Reads an open file in bounded pieces: a small file is held whole, a large one is read as needed."""

import os
from collections.abc import Iterator

from handrail.errors import ToolError

WHOLE = 32 * 1024 * 1024
STEP = 4 * 1024 * 1024


class FileSource:
    """
    The first `size` bytes of a file.

    A mapped file would be simpler, but the program dies when another process shortens a mapped file.
    """

    def __init__(self, descriptor: int, size: int, whole: int = WHOLE, step: int = STEP) -> None:
        self._descriptor = descriptor
        self._step = step
        self.size = size
        self._data: bytes | None = None
        if size <= whole:
            self._data = self.read(0, size)

    @classmethod
    def of(cls, data: bytes) -> "FileSource":
        """Bytes that are not in a file."""
        source = cls.__new__(cls)
        source._descriptor, source._step, source.size, source._data = -1, STEP, len(data), data
        return source

    @property
    def is_held(self) -> bool:
        """Whether all of it is in memory."""
        return self._data is not None

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`, as far as there are any."""
        start = max(start, 0)
        if self._data is not None:
            return self._data[start:end]
        end = min(end, self.size)
        parts = []
        while start < end:
            part = os.pread(self._descriptor, end - start, start)
            if not part:
                raise ToolError("The file became shorter while it was read. Read it again.")
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes | memoryview]:
        """The bytes from `start` to `end` in order, without a copy where that is possible."""
        end = self.size if end is None else end
        if self._data is not None:
            if start < end:
                yield memoryview(self._data)[start:end]
            return
        while start < end:
            yield self.read(start, min(start + self._step, end))
            start += self._step

    def windows(self, after: int = 0, before: int = 0) -> Iterator[tuple[int, int, bytes]]:
        """(start, end, bytes) of consecutive windows; the bytes reach up to `before` and `after` beyond them."""
        if self._data is not None:
            yield 0, self.size, self._data
            return
        for start in range(0, self.size, self._step):
            end = min(start + self._step, self.size)
            yield start, end, self.read(start - before, end + after)

    def count(self, needle: bytes, start: int, end: int) -> int:
        """How often a byte occurs from `start` up to `end`."""
        if self._data is not None:
            return self._data.count(needle, start, end)
        return sum(bytes(piece).count(needle) for piece in self.pieces(start, end))
