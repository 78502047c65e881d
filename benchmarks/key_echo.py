"""
From a key to its echo, in the real program on a pseudo-terminal, while an answer streams in and ten calls report.

The model is a program of its own, so that what it costs is not counted here:

    python -m benchmarks.key_echo PORT_FILE
"""

import asyncio
import fcntl
import json
import os
import pty
import random
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.wire_answers import ScriptedAnswer, anthropic_events

RATE = 10_000
"""Deltas a second."""
SECONDS = 30
CALLS = 10
COMMAND = "for i in $(seq 1 600); do echo step $i; sleep 0.1; done"
KEYS = 400
LETTERS = "".join(map(chr, range(0x100, 0x17F)))
"""Letters that nothing else on the screen contains."""
CLEAR = "\x15"
READY = b"mode default"


def answer_events() -> Iterator[bytes]:
    """An answer that begins with ten calls and then talks for a long time."""
    calls = [ToolUse(f"use{at}", "Bash", {"command": COMMAND, "description": "count"}) for at in range(CALLS)]
    sentence = "Some *words* of an answer, in `paragraphs` that are as long as they often are. "
    paragraph = sentence * 4 + "\n\n"
    text = Text((paragraph * (RATE * SECONDS * 4 // len(paragraph)))[: RATE * SECONDS * 4])
    return anthropic_events(ScriptedAnswer([*calls, text], "tool_use", "scripted", 10, 5, piece=4))


async def serve(port_file: Path) -> None:
    """Answer every request in the same way, at most so many deltas a second."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(size)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        events, started, sent = answer_events(), time.monotonic(), 0
        try:
            while True:
                due = int((time.monotonic() - started) * RATE)
                piece = b"".join(event for _, event in zip(range(due - sent), events, strict=False))
                if due > sent and not piece:
                    break
                sent = due
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.002)
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port_file.write_text(str(server.sockets[0].getsockname()[1]))  # noqa: ASYNC240  # nothing else goes on yet
    await server.serve_forever()


class EchoTerminal:
    """A program on a pseudo-terminal, and how long it takes to show a key."""

    def __init__(self, argv: list[str], env: dict[str, str], folder: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = subprocess.Popen(
            argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=folder, start_new_session=True
        )
        os.close(theirs)

    def until(self, text: bytes, seconds: float = 20) -> bool:
        """Whether this was written in time."""
        seen, end = b"", time.perf_counter() + seconds
        while text not in seen:
            if not select.select([self._ours], [], [], max(end - time.perf_counter(), 0))[0]:
                return False
            seen = seen[-1_000:] + os.read(self._ours, 65_536)
        return True

    def rest(self, seconds: float) -> None:
        """Read for so long what is written, as a terminal does."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._ours], [], [], left)[0]:
                os.read(self._ours, 65_536)

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._ours, keys.encode())

    def waited(self) -> float:
        """Milliseconds that the program and this one have waited for a processor which others had."""
        files = [Path(f"/proc/{name}/schedstat") for name in (self.process.pid, "self")]
        return sum(int(file.read_text().split()[1]) for file in files if file.exists()) / 1e6

    def echo_times(self, count: int) -> list[tuple[float, float]]:
        """Milliseconds from a key to its echo, and those of them in which no processor was free; in a person's pace."""
        times: list[tuple[float, float]] = []
        for at in range(count):
            letter = LETTERS[at % len(LETTERS)]
            waited, started = self.waited(), time.perf_counter()
            self.type(letter)
            assert self.until(letter.encode()), f"key {at} was not shown"
            times.append(((time.perf_counter() - started) * 1e3, self.waited() - waited))
            if at % 40 == 39:
                self.type(CLEAR)
            self.rest(random.uniform(0.02, 0.06))
        return times

    def close(self) -> None:
        """End the program."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


def quantile(times: list[float], share: float) -> float:
    """The value that so large a share of the others does not exceed."""
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


def report() -> Iterator[str]:
    """The quantiles, with and without the time in which other programs had the processors."""
    for name, times in measure().items():
        whole = [took for took, _ in times]
        own = [max(took - waited, 0.0) for took, waited in times]
        yield (
            f"key to echo {name}: p50 {quantile(whole, 0.5):.1f} ms, p99 {quantile(whole, 0.99):.1f} ms; without waits "
            f"for a processor p50 {quantile(own, 0.5):.1f} ms, p99 {quantile(own, 0.99):.1f} ms"
        )


def measure() -> dict[str, list[tuple[float, float]]]:
    """Milliseconds to the echo of each key: at rest, and with the answer and its calls."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder, "port")
        model = subprocess.Popen([sys.executable, "-m", "benchmarks.key_echo", str(port_file)])
        while not port_file.exists() or not port_file.read_text():
            time.sleep(0.05)
        settings = Path(folder, "home/.handrail/settings.json")
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps({"permissions": {"allow": ["Bash"]}}))
        env = {
            **os.environ,
            "TERM": "xterm-256color",
            "HOME": f"{folder}/home",
            "HANDRAIL_STATE_DIR": f"{folder}/state",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port_file.read_text()}",
            "ANTHROPIC_API_KEY": "none",
        }
        terminal = EchoTerminal([sys.executable, "-m", "handrail"], env, folder)
        try:
            assert terminal.until(READY), "the session was not opened"
            terminal.rest(1)
            at_rest = terminal.echo_times(KEYS // 2)
            terminal.type(f"{CLEAR}Go on.\r")
            assert terminal.until(b"step"), "no call reported"
            terminal.rest(1)
            loaded = terminal.echo_times(KEYS)
        finally:
            terminal.close()
            model.kill()
            model.wait()
    return {"at rest": at_rest, f"with {RATE:,} deltas a second and {CALLS} calls": loaded}


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
