"""A command that the person runs in their own shell: what it prints is handed on while it runs."""

import asyncio
import codecs
import os
from collections.abc import Callable, Mapping

from handrail.processes.spawn import ProcessSpec, start

CHUNK = 65_536
CUT = "(what it prints from here on is not shown)"


class LineStream:
    """The output of a command: whole lines are handed on as they come, up to a number of characters in all."""

    def __init__(self, room: int, on_lines: Callable[[str], None]) -> None:
        self._room = room
        self._on_lines = on_lines
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""
        self.text = ""
        """All that was handed on."""

    def add(self, data: bytes, *, is_last: bool = False) -> None:
        """Take what was printed; the last of it need not end a line. Empty lines wait for what follows them."""
        if self._room < 0:
            return
        text = (self._begun + self._decoder.decode(data, is_last)).replace("\r\n", "\n")
        lines = (text if is_last else text.rpartition("\n")[0]).rstrip("\n")
        self._begun = text[len(lines) :]
        if len(text) > self._room:
            lines = f"{text[: self._room]}\n{CUT}"
            self._room = -1
        else:
            self._room -= len(lines)
        if lines:
            self._on_lines(lines.removeprefix("\n") if self.text else lines)
            self.text += lines


async def run_own_command(command: str, folder: str, env: Mapping[str, str], shown: LineStream) -> int:
    """
    Run a command line in the person's shell; its exit code, or minus the signal. If this is cancelled, it ends.

    Raises:
        OSError: the shell cannot be started.
    """
    loop = asyncio.get_running_loop()
    ours, theirs = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.set_blocking(ours, False)

    def read() -> bool:
        try:
            data = os.read(ours, CHUNK)
        except BlockingIOError:
            return False
        shown.add(data)
        if not data:
            loop.remove_reader(ours)
        return bool(data)

    try:
        spec = ProcessSpec([env.get("SHELL") or "/bin/sh", "-c", command], folder, env)
        running = await start(spec, nothing, theirs, theirs)
        loop.add_reader(ours, read)
        try:
            ended = await running.wait()
        except asyncio.CancelledError:
            await running.stop_and_wait()
            raise
        while read():
            pass
        return ended.code
    finally:
        loop.remove_reader(ours)
        for each in (ours, theirs, nothing):
            os.close(each)
        shown.add(b"", is_last=True)
