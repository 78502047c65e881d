"""Run a program to its end, with bounded output, and leave no process behind."""

import asyncio
import os
from collections.abc import Mapping, Sequence

from handrail.processes.sandbox_contract import Restrictions
from handrail.processes.spawn import ProcessSpec, start
from handrail.records import record

CHUNK = 65_536


@record
class Ended:
    """How a program ended: its exit code, or minus the signal; what it said, as far as that was kept."""

    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    cut: bool = False
    """Some of what it said was dropped."""


async def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout: float | None,  # noqa: ASYNC109  # it is the reaper's clock that counts, also when this loop stands still
    max_bytes: int,
    restrictions: Restrictions = None,
) -> Ended:
    """
    Run a program in a session of its own. When this returns or is cancelled, no process of it lives.

    After `timeout` seconds it is asked to end, and killed half a second later. Of each stream `max_bytes` are kept.

    Raises:
        OSError: it cannot be started.
    """
    feed, out, err = _Feed(stdin), _Collected(max_bytes), _Collected(max_bytes)
    ends = (feed, out, err)
    try:
        for end in ends:
            end.begin()  # its input should be there when it starts
        command = ProcessSpec(argv, cwd, env, timeout, restrictions=restrictions)
        running = await start(command, feed.theirs, out.theirs, err.theirs)
        for end in ends:
            end.hand_over()
        try:
            ended = await running.wait()
        except asyncio.CancelledError:
            await running.stop_and_wait()
            raise
        out.finish()
        err.finish()
    finally:
        for end in ends:
            end.close()
    return Ended(ended.code, bytes(out.data), bytes(err.data), ended.why == "timeout", out.cut or err.cut)


class _Pipe:
    """Our end of a pipe, watched by the event loop, and the end that the program gets."""

    def __init__(self, ours: int, theirs: int) -> None:
        self.ours, self.theirs = ours, theirs
        self._loop = asyncio.get_running_loop()
        os.set_blocking(ours, False)

    def begin(self) -> None:
        """Watch our end."""

    def hand_over(self) -> None:
        """Close the end that the program has by now."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def close(self) -> None:
        self.stop_watching()
        self.hand_over()

    def stop_watching(self) -> None:
        """Close our end."""
        if self.ours >= 0:
            self._loop.remove_reader(self.ours)
            self._loop.remove_writer(self.ours)
            os.close(self.ours)
            self.ours = -1


class _Feed(_Pipe):
    """What the program reads."""

    def __init__(self, data: bytes) -> None:
        theirs, ours = os.pipe()
        super().__init__(ours, theirs)
        self._rest = memoryview(data)

    def begin(self) -> None:
        self._loop.add_writer(self.ours, self._write)
        self._write()

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self.ours, self._rest) :] if self._rest else self._rest
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._rest = self._rest[:0]  # the program does not read its input
        if not self._rest:
            self.stop_watching()


class _Collected(_Pipe):
    """What the program says, up to a number of bytes."""

    def __init__(self, room: int) -> None:
        super().__init__(*os.pipe())
        self.data = bytearray()
        self.cut = False
        self._room = room

    def begin(self) -> None:
        self._loop.add_reader(self.ours, self._read)

    def finish(self) -> None:
        """Read what is left in the pipe; no process writes to it any more."""
        while self.ours >= 0 and self._read():
            pass

    def _read(self) -> bool:
        try:
            data = os.read(self.ours, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.stop_watching()
        room = self._room - len(self.data)
        self.data += data[:room]
        self.cut = self.cut or len(data) > room
        return True
