"""
The lines of one run, in a file: written once, read by as many as like, each at its own pace.

A reader holds nothing but its place in the file, so a slow one holds up no other, and one that comes back says how many
lines it has. A line is in the file before anyone sees it; half a line that a killed process left is cut off.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from handrail.errors import HandrailError
from handrail.files.private_folder import make_private_folder

BLOCK = 256 * 1024
CURE = "Make room, and resume the run."
KEEP_ALIVE = 15.0
"""Seconds after which a reader of a quiet run gets an empty line."""


class EventLog:
    """The lines of a run. `is_over`: no more come for now."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._fd = -1
        self._size = 0
        self._news = asyncio.Event()
        self.is_over = True

    def open(self) -> None:
        """Get ready for more lines; HandrailError if the file cannot be written."""
        make_private_folder(self._file.parent)
        try:
            self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HandrailError(f"{self._file} cannot be written: {error.strerror}.") from error
        self._size = whole_lines(self._fd)
        os.ftruncate(self._fd, self._size)
        self.is_over = False

    def append(self, line: bytes) -> None:
        """Add a line; HandrailError if there is no room for it."""
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            raise HandrailError(f"{self._file} cannot be written: {error.strerror}. {CURE}") from error
        if written < len(line):
            os.ftruncate(self._fd, self._size)
            raise HandrailError(f"{self._file} cannot be written: the disk is full. {CURE}")
        self._size += written
        self._wake()

    def close(self) -> None:
        """No more lines come for now: readers end when they have all."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def follow(self, after: int) -> AsyncIterator[bytes]:
        """The lines after so many, as they come, to the end; an empty one now and then while nothing comes."""
        descriptor, place = -1, 0
        try:
            while True:
                news, is_over = self._news, self.is_over
                if descriptor < 0 and (descriptor := self._open_to_read()) >= 0:
                    place = place_after(descriptor, after)
                while descriptor >= 0 and (data := os.pread(descriptor, BLOCK, place)):
                    place += len(data)
                    yield data
                if is_over:
                    return
                try:
                    async with asyncio.timeout(KEEP_ALIVE):
                        await news.wait()
                except TimeoutError:
                    yield b"\n"
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _open_to_read(self) -> int:
        """A descriptor of the file; -1 if it is not there yet."""
        try:
            return os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return -1


def whole_lines(descriptor: int) -> int:
    """How many bytes of a file are whole lines."""
    end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - BLOCK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def place_after(descriptor: int, lines: int) -> int:
    """Where the line after so many begins; the end if there are not as many."""
    place = 0
    while lines > 0 and (data := os.pread(descriptor, BLOCK, place)):
        count = data.count(b"\n")
        if count < lines:
            lines -= count
            place += len(data)
            continue
        at = -1
        for _ in range(lines):
            at = data.index(b"\n", at + 1)
        return place + at + 1
    return place


def last_line(file: Path) -> bytes:
    """The last whole line of a file; empty if there is none."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        end = whole_lines(descriptor) - 1
        tail, start = b"", end
        while start > 0 and b"\n" not in tail:
            step = max(0, start - BLOCK)
            tail, start = os.pread(descriptor, start - step, step) + tail, step
        return tail.rpartition(b"\n")[2]
    finally:
        os.close(descriptor)
