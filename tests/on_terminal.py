"""A program on a terminal of a test: what it draws, as a person sees it, and what a person types."""

import asyncio
import fcntl
import os
import re
import struct
import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.forked import program

PATIENCE = 60
LAUNCHER = """
import fcntl, os, signal, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for name in ("HUP", "INT", "PIPE", "TERM", "TSTP", "XFSZ"):
    signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""
TAKE_TERMINAL = (sys.executable, "-ISE", "-c", LAUNCHER)
"""
In front of a command: makes its standard input the terminal that controls it.

A function that is called after a fork (preexec_fn) could wait for ever for a lock that another thread had at the fork.
"""


class OnTerminal:
    """
    `handrail` with these arguments on a pseudo-terminal. With `controlled`, keys such as Ctrl+C act as on a real one.

    `out` takes the standard output away from the terminal.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *arguments: str,
        columns: int = 80,
        controlled: bool = False,
        out: int | None = None,
    ) -> None:
        self._folder = folder
        self._environment = {"TERM": "xterm", **environment}
        self._arguments = arguments
        self._controlled = controlled
        self._out = out
        self._ours, self._theirs = os.openpty()
        self._arrived = asyncio.Event()
        self._is_over = False
        self.raw = ""
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    async def __aenter__(self) -> Self:
        os.set_blocking(self._ours, False)
        asyncio.get_running_loop().add_reader(self._ours, self._read)
        start = (*TAKE_TERMINAL, sys.executable, "-m", "handrail") if self._controlled else (program(),)
        self._environment.pop("COLUMNS", None)
        self._process = await asyncio.create_subprocess_exec(
            *start,
            *self._arguments,
            cwd=self._folder,
            env=self._environment,
            stdin=self._theirs,
            stdout=self._theirs if self._out is None else self._out,
            stderr=self._theirs,
        )
        os.close(self._theirs)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        asyncio.get_running_loop().remove_reader(self._ours)
        os.close(self._ours)

    def _read(self) -> None:
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:  # no program has it open any more
            piece = b""
        if not piece:
            self._is_over = True
            asyncio.get_running_loop().remove_reader(self._ours)
        self.raw += piece.decode("utf-8", "replace")
        self._arrived.set()

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._ours, keys.encode())

    async def until(self, text: str, *, times: int = 1) -> None:
        """Wait until the program has written this text so often."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self.raw.count(text) < times and not self._is_over:
                    self._arrived.clear()
                    await self._arrived.wait()
        assert self.raw.count(text) >= times, f"{text!r} did not come. The terminal shows:\n{self.shown}"

    async def code(self) -> int:
        """The exit code, when the program has ended and all that it wrote is read."""
        code = await asyncio.wait_for(self._process.wait(), PATIENCE)
        while not self._is_over:
            self._arrived.clear()
            await asyncio.wait_for(self._arrived.wait(), PATIENCE)
        return code

    @property
    def shown(self) -> str:
        """What is on the screen."""
        return rendered(self.raw)


def rendered(raw: str) -> str:
    """The text that a terminal shows after these bytes: colours and redrawn lines are gone."""
    lines: list[str] = []
    for written in re.sub(r"\x1b\[[0-9;]*m", "", raw).split("\n"):
        line, at = "", 0
        for part in re.findall(r"\r|\x1b\[K|[^\r\x1b]+|\x1b", written):
            match part:
                case "\r":
                    at = 0
                case "\x1b[K":
                    line = line[:at]
                case _:
                    line = line[:at] + part + line[at + len(part) :]
                    at += len(part)
        lines.append(line)
    return "\n".join(lines)
