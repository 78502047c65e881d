"""A terminal that wraps old lines anew when its width changes: what was committed is there exactly once."""

import asyncio
import base64
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.cli.test_run import variables
from tests.interactive import Conversing

from handrail.conversation.blocks import Text
from handrail.testing.model_server import ModelServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.needs("node", ".xterm/version")]

HERE = Path(__file__).parent
XTERM = Path(__file__).parents[3] / ".xterm" / "node_modules" / "@xterm" / "headless"
LINES, LENGTH, PIECE = 60, 68, 11
"""Lines of the answer, characters of each, and of a delta."""


class ReflowingScreen:
    """`@xterm/headless` in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def tell(self, **order: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def rows(self) -> list[str]:
        assert self._process.stdout is not None
        self.tell(dump=True)
        return list(json.loads(await self._process.stdout.readline())["rows"])


async def test_every_committed_line_is_there_once_after_many_widths(tmp_path: Path) -> None:
    words = "of an answer that is long enough to be wrapped when narrow"
    text = "\n\n".join(f"line {number:02} {words}" for number in range(LINES))
    gates = {frame: asyncio.Event() for frame in (30, 90, 150, 210, 270, 330)}
    process = await asyncio.create_subprocess_exec(
        "node",
        str(HERE / "xterm_screen.cjs"),
        str(XTERM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=10_000_000,
    )
    screen = ReflowingScreen(process)
    screen.tell(open=[100, 24])
    sent = 0

    def pass_on() -> None:
        nonlocal sent
        screen.tell(data=base64.b64encode(terminal.raw[sent:].encode()).decode())
        sent = len(terminal.raw)

    async with (
        ModelServer([Reply((Text(text),), piece=PIECE, gates=gates)], strict=True) as server,
        Conversing(tmp_path, variables(server, tmp_path), "Say much.", columns=100, real=True) as terminal,
    ):
        await terminal.until("line 01")
        for size, (frame, gate) in zip((60, 100, 45, 100, 70, 90), gates.items(), strict=True):
            await terminal.until(f"line {frame * PIECE // LENGTH - 2:02}")
            pass_on()
            screen.tell(resize=[size, 24])
            terminal.resize(size)
            await terminal.frames(2)
            gate.set()
        await terminal.until(f"line {LINES - 1}")
        await terminal.until("waiting for the model", gone=True)
        terminal.type("x")
        await terminal.until("> x")
        pass_on()
        rows = await screen.rows()
        found = Counter(match[0] for row in rows for match in re.finditer(r"line \d\d", row))
        assert [found[f"line {number:02}"] for number in range(LINES)] == [1] * LINES

        for size in (60, 100, 45, 100, 70, 30, 100, 90, 80, 70, 60, 50, 100):
            screen.tell(resize=[size, 24])
            terminal.resize(size)
            await terminal.frames(1)
            pass_on()
        rows = await screen.rows()
        assert sum("mode default" in row for row in rows) <= 12
        found = Counter(match[0] for row in rows for match in re.finditer(r"line \d\d", row))
        assert max(found.values()) == 1
    process.terminate()
    await process.wait()
