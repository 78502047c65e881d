"""
The descriptor that output goes to: whether it takes data at once, and whether it still has a reader.

    data up to PIPE_BUF      the kernel takes it whole or not at all
    more, on Linux           written when the pipe is empty and as large as the data: nothing is left for later
    more, elsewhere          written in parts, as the reader takes them
"""

import asyncio
import fcntl
import os
import select
import stat
import sys
import time
from collections.abc import Callable
from errno import EPIPE
from termios import FIONREAD

AT_ONCE = 4096
"""Bytes that a writable pipe takes without blocking."""
LOOK_AGAIN = 0.005
"""Seconds after which a full pipe is looked at again: nothing reports that it is empty."""
GET_SIZE, SET_SIZE = getattr(fcntl, "F_GETPIPE_SZ", None), getattr(fcntl, "F_SETPIPE_SZ", None)
GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Pipe:
    """The writing end of a pipe; any other descriptor will do, without the promise of whole data."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode) and GET_SIZE is not None
        self.given_up = False
        """Set by another thread: what waits is not written any more."""

    def has_room(self) -> bool:
        """Whether `AT_ONCE` bytes can be written without waiting, or nothing ever can."""
        return bool(self._poll.poll(0))

    def write(self, data: bytes) -> bytes:
        """Write as much as possible; what is left."""
        return data[os.write(self._descriptor, data) :]

    def write_patiently(self, data: bytes) -> None:
        """Write everything, as soon as the reader lets it; raises OSError if it is gone or given up."""
        self._await_room(len(data))
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:  # another process has switched it to non-blocking
                self._poll.poll(1000)

    def _await_room(self, size: int) -> None:
        """Wait until the data fits whole. Data that never fits, or not into a pipe, need not wait."""
        if not self._is_pipe or not self._grow(size):
            return
        while not self._fits(size):
            if self.given_up:
                raise BrokenPipeError(EPIPE, "the reader is gone")
            time.sleep(LOOK_AGAIN)

    def _grow(self, size: int) -> bool:
        """Whether the pipe can hold this much; it is made larger if that is allowed."""
        assert GET_SIZE is not None
        assert SET_SIZE is not None
        try:
            if fcntl.fcntl(self._descriptor, GET_SIZE) < size:
                fcntl.fcntl(self._descriptor, SET_SIZE, size)
            return fcntl.fcntl(self._descriptor, GET_SIZE) >= size
        except OSError:
            return False

    def _fits(self, size: int) -> bool:
        """Whether the data can be written at once, or the reader has gone, which writing will tell."""
        if is_left(self._descriptor):
            return True
        if size <= AT_ONCE:
            return self.has_room()
        waiting = fcntl.ioctl(self._descriptor, FIONREAD, b"\0" * 4)
        return int.from_bytes(waiting, sys.byteorder) == 0


def is_left(descriptor: int) -> bool:
    """Whether the reader of a pipe or socket has closed it."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & GONE for _, events in poll.poll(0))


def watch_reader(descriptor: int, on_leave: Callable[[], None]) -> None:
    """Call `on_leave` once when the reader of a pipe or socket closes it, also while nothing is written."""
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return
    loop = asyncio.get_running_loop()

    def look() -> None:
        loop.remove_reader(descriptor)
        if is_left(descriptor):
            on_leave()

    loop.add_reader(descriptor, look)
