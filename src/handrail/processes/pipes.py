"""Pipes to the standard streams of a program that is started with them and talked to."""

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress

from handrail.processes.spawn import ProcessSpec, Running, start
from handrail.records import record

MAX_UNREAD_ERRORS = 64 * 1024
"""Unread bytes of standard error, about, at which its writer has to wait."""


@record
class Pipes:
    """Our ends of the standard streams of a server."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    transports: tuple[asyncio.BaseTransport, ...]

    def close(self) -> None:
        """Close all of them."""
        for transport in self.transports:
            transport.close()


async def start_with_pipes(command: ProcessSpec, limit: int) -> tuple[Running, Pipes]:
    """Start a program and talk to it by pipes, whose lines have at most `limit` bytes. OSError if it does not start."""
    pipes, theirs = await _open_pipes(limit)
    try:
        return await start(command, *theirs), pipes
    except BaseException:
        pipes.close()
        raise
    finally:
        for fd in theirs:
            os.close(fd)


async def end_program(running: Running, pipes: Pipes, readers: Iterable["asyncio.Task[None]"], grace: float) -> None:
    """
    Close its standard input, and end the program and everything that it started if it does not exit by itself.

    Cancelling this only shortens the grace: nothing of the program is left in any case.
    """
    pipes.stdin.close()
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(running.wait(), grace)
    finally:
        try:
            await running.stop_and_wait()
        finally:
            for reader in readers:
                reader.cancel()
            pipes.close()
    await asyncio.gather(*readers, return_exceptions=True)


async def _open_pipes(limit: int) -> tuple[Pipes, tuple[int, int, int]]:
    """Pipes for a server, whose lines have at most `limit` bytes, and the descriptors that it gets."""
    loop = asyncio.get_running_loop()
    (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = os.pipe(), os.pipe(), os.pipe()
    out, stdout_reader = await _reading(from_stdout, limit)
    err, stderr_reader = await _reading(from_stderr, min(limit, MAX_UNREAD_ERRORS))
    into, flow = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(to_stdin, "wb", 0)
    )
    pipes = Pipes(asyncio.StreamWriter(into, flow, None, loop), stdout_reader, stderr_reader, (into, out, err))
    return pipes, (stdin, stdout, stderr)


async def _reading(fd: int, limit: int) -> tuple[asyncio.BaseTransport, asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=limit)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", 0))
    return transport, reader
