"""A conversation on the terminal of a test: a screen emulator shows what a person sees, and keeps every frame."""

import asyncio
import fcntl
import os
import re
import signal
import struct
import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte
from wcwidth import wcswidth

from tests.forked import program
from tests.on_terminal import PATIENCE, TAKE_TERMINAL

BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
FORBIDDEN = ("\x1b[?1049h", "\x1b[2J", "\x1b[3J", "\x1b[6n")
OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]2;[^\x07\x1b]*\x07|\x1b\[ q|\x1b\[[0-9]* q|\r|\n|\x07|\x08")

MOVES = re.compile(r"\r|\n|\x1b\[[0-9;]*[A-DGHJKMfd]")
"""What ends a run of text in a row."""


class Emulator(pyte.HistoryScreen):
    """A screen that clears what the lines below a deleted one would have moved to, where there are none."""

    def delete_lines(self, count: int | None = None) -> None:
        for y in range(self.lines):
            self.buffer[y]  # pyte moves only lines that are there
        super().delete_lines(count)


class Conversing:
    """`handrail`, or what `start` says, with these arguments on a pseudo-terminal, drawn by an emulator."""

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str],
        *arguments: str,
        columns: int = 80,
        rows: int = 24,
        real: bool = False,
        start: tuple[str, ...] = (),
    ) -> None:
        self._folder = folder
        self._env = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **env}
        self._env.pop("COLUMNS", None)
        self._env.pop("NO_COLOR", None)
        self._env |= {name: value for name, value in env.items() if name == "NO_COLOR"}
        self._arguments = arguments
        self._start = start or ((sys.executable, "-m", "handrail") if real else (str(program()),))
        self._ours, self._theirs = os.openpty()
        self.screen = Emulator(columns, rows, history=20_000, ratio=1)
        self._stream = pyte.Stream(self.screen)
        self._arrived = asyncio.Event()
        self._is_over = False
        self.raw = ""
        self._widest = columns
        self._set_size(columns, rows)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def __aenter__(self) -> Self:
        os.set_blocking(self._ours, False)
        asyncio.get_running_loop().add_reader(self._ours, self._read)
        self._before = termios.tcgetattr(self._theirs)
        self.process = await asyncio.create_subprocess_exec(
            *TAKE_TERMINAL,
            *self._start,
            *self._arguments,
            cwd=self._folder,
            env=self._env,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        asyncio.get_running_loop().remove_reader(self._ours)
        os.close(self._ours)
        os.close(self._theirs)

    def _read(self) -> None:
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:
            piece = b""
        if not piece:
            self._is_over = True
            asyncio.get_running_loop().remove_reader(self._ours)
        text = piece.decode("utf-8", "replace")
        self.raw += text
        self._stream.feed(text)
        self._arrived.set()

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._ours, keys.encode())

    def pause(self) -> None:
        """Take nothing from the program until `go_on`, as a terminal that hangs."""
        termios.tcflow(self._theirs, termios.TCOOFF)

    def go_on(self) -> None:
        """Take again what the program writes."""
        termios.tcflow(self._theirs, termios.TCOON)

    async def until_exists(self, file: Path) -> None:
        """Wait until the program has made a file."""
        async with asyncio.timeout(PATIENCE):
            while not file.exists():
                await asyncio.sleep(0.05)

    def resize(self, columns: int, rows: int = 24) -> None:
        """Give the terminal another size."""
        self._widest = max(self._widest, columns)
        self.screen.resize(rows, columns)
        self._set_size(columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    @property
    def shown(self) -> str:
        """What is on the screen now."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def whole(self) -> str:
        """What is on the screen, below what has scrolled out of it."""
        gone = ["".join(row[x].data for x in range(self.screen.columns)).rstrip() for row in self.screen.history.top]
        return "\n".join([*gone, self.shown])

    async def until(self, text: str, *, gone: bool = False) -> None:
        """Wait until this is on the screen, or is not there any more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while (text in self.whole) is gone and not self._is_over and self.process.returncode is None:
                    self._arrived.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._arrived.wait(), 0.2)
        state = "is still there" if gone else "did not come"
        assert (text in self.whole) is not gone, f"{text!r} {state}. The terminal shows:\n{self.whole}"

    async def frames(self, count: int) -> None:
        """Wait for so many more frames."""
        wanted = self.raw.count(END) + count
        async with asyncio.timeout(PATIENCE):
            while self.raw.count(END) < wanted:
                self._arrived.clear()
                await self._arrived.wait()

    async def until_asked(self) -> None:
        """Wait until the question on the screen takes the keys."""
        await self.until("a number, or arrows and Enter")

    async def code(self) -> int:
        """The exit code, when the program has ended."""
        return await asyncio.wait_for(self.process.wait(), PATIENCE)

    def has_usual_modes(self) -> bool:
        """Whether the terminal is left as it was before."""
        return termios.tcgetattr(self._theirs) == self._before

    def check_frames(self) -> None:
        """Assert what holds for every frame: one synchronized write, no line too wide, nothing that steers in it."""
        for forbidden in FORBIDDEN:
            assert forbidden not in self.raw
        depth = 0
        for part in re.split("(\x1b\\[\\?2026[hl])", self.raw):
            if part in (BEGIN, END):
                depth += 1 if part == BEGIN else -1
                assert depth in (0, 1)
            elif depth == 0:
                assert not OURS.sub("", part).strip() or "handrail" in part, f"written outside of a frame: {part!r}"
            for row in MOVES.split(part) if depth else ():
                assert wcswidth(OURS.sub("", row)) <= self._widest, f"wider than the screen: {row!r}"
            rest = OURS.sub("", part)
            assert "\x1b" not in rest, f"a raw escape: {part!r}"
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", rest), repr(part)
