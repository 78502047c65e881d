"""
Lines in and lines out, over any pair of streams. The client may be slow, gone or hostile.

Reading never blocks the event loop, and pauses when lines are not taken. Writing waits for a slow reader without
holding up anything else. On Linux a line goes into a pipe whole or not at all, so that the output ends at the end of a
line however this process ends; elsewhere, and for lines of more than a megabyte, only its parts do.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Mapping
from errno import EPIPE
from queue import SimpleQueue
from typing import Any, Protocol

from handrail.conversation.plain import plain_json
from handrail.errors import ClosedError
from handrail.stdio.bounds import LINE_LIMIT, shorter
from handrail.stdio.pipe import AT_ONCE, Pipe

MAX_INCOMING = 64 * 1024 * 1024
WAITING_LINES = 1000
LAST_WORDS = 1.0
"""Seconds that a reader has at the end to take what is waiting for it."""


class LineSource(Protocol):
    """Where lines come from. None = there are no more."""

    async def next(self) -> bytes | None: ...


class Out(Protocol):
    """Where lines go."""

    async def send(self, line: Mapping[str, Any]) -> None:
        """Write one line and wait until it is written; raises ClosedError if the reader is gone."""
        ...


class FileLines:
    """Lines of a descriptor, read in a thread, so that it need not be non-blocking."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes | None] = deque()
        self._arrived = asyncio.Event()
        self._room = threading.Semaphore(WAITING_LINES)
        threading.Thread(target=self._read, daemon=True, name="handrail-lines").start()

    async def next(self) -> bytes | None:
        while not self._lines:
            self._arrived.clear()
            await self._arrived.wait()
        if self._lines[0] is None:
            return None
        self._room.release()
        return self._lines.popleft()

    def _read(self) -> None:
        waiting: list[bytes] = []
        size = 0
        while True:
            try:
                piece = os.read(self._descriptor, 65_536)
            except OSError:
                piece = b""
            *whole, rest = piece.split(b"\n")
            for end in whole:
                self._put(b"".join([*waiting, end]))
                waiting, size = [], 0
            if not piece:
                if any(waiting):
                    self._put(b"".join(waiting))
                self._put(None)
                return
            size += len(rest)
            if size <= MAX_INCOMING + 65_536:  # the rest is not kept: a line this long is refused anyway
                waiting.append(rest)

    def _put(self, line: bytes | None) -> None:
        self._room.acquire()
        try:
            self._loop.call_soon_threadsafe(self._arrive, line)
        except RuntimeError:
            return  # the loop has ended before the stream did

    def _arrive(self, line: bytes | None) -> None:
        self._lines.append(line)
        self._arrived.set()


class FileOut:
    """Writes line by line to a descriptor; a thread writes what cannot be written at once."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = Pipe(descriptor)
        self._loop = asyncio.get_running_loop()
        self._gone = False
        self._waiting: set[asyncio.Future[None]] = set()
        self._queue: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def send(self, line: Mapping[str, Any]) -> None:
        """Write one line of JSON and wait until it is written; raises ClosedError if the reader is gone."""
        await self.write(line_bytes(line))

    async def write(self, data: bytes) -> None:
        """Write whole lines and wait until they are written; raises ClosedError if the reader is gone."""
        if self._gone:
            raise ClosedError("The reader of the output is gone.")
        try:
            if not self._waiting and len(data) <= AT_ONCE and self._pipe.has_room():
                data = self._pipe.write(data)
            if data:
                await self._patiently(data)
        except OSError as error:
            self._gone = True
            raise ClosedError(f"The output cannot be written: {error.strerror}.") from error

    def hurry(self) -> None:
        """It is to end: a reader that takes nothing for `LAST_WORDS` seconds is given up."""
        self._loop.call_later(LAST_WORDS, self._give_up)

    def close(self) -> None:
        """The reader is gone: nothing is written any more."""
        self._gone = self._pipe.given_up = True
        for done in self._waiting:
            if not done.done():
                done.set_exception(BrokenPipeError(EPIPE, "the reader is gone"))

    def _give_up(self) -> None:
        if self._waiting:
            self.close()

    async def _patiently(self, data: bytes) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True, name="handrail-out")
            self._thread.start()
        done = self._loop.create_future()
        self._waiting.add(done)
        self._queue.put((data, done))
        await asyncio.shield(done)  # a cancelled sender does not cut the line in its middle

    def _work(self) -> None:
        while True:
            data, done = self._queue.get()
            problem: OSError | None = None
            try:
                self._pipe.write_patiently(data)
            except OSError as error:
                problem = error
            try:
                self._loop.call_soon_threadsafe(self._finish, done, problem)
            except RuntimeError:
                return  # the loop has ended before the reader took it all

    def _finish(self, done: "asyncio.Future[None]", problem: OSError | None) -> None:
        self._waiting.discard(done)
        if problem is not None:
            self._gone = True
        if done.done():
            return
        if problem is None:
            done.set_result(None)
        else:
            done.set_exception(problem)


def line_bytes(line: Mapping[str, Any]) -> bytes:
    """One line of JSON, not longer than readers take; lone surrogates cannot break it."""
    data = _encode(line)
    return data if len(data) <= LINE_LIMIT else _encode(shorter(line, LINE_LIMIT))


def _encode(line: Mapping[str, Any]) -> bytes:
    return plain_json(line, compact=True).encode() + b"\n"
