"""
Calls inside a stream that goes on: when they start, and when the next request comes.

    python -m benchmarks.stream_bench [--json]

The model's answer holds text for 0.5 s, then one complete command, and then streams on for 1 s. Through real sessions
(`handrail -p`) and a model server on loopback: from the command's block to its start, as the moment at which it touches
a named pipe, and from the beginning of the answer to the next request. A command that changes something and one that
only reads, as the first call of the process and as the second; and one at the head of an answer that comes at once,
before anything can have been loaded. The floor is a program with httpx2, from its start to its request, in this run.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.start_bench import ENVIRONMENT, FLOOR, HANDRAIL, request_time, started

from handrail.conversation.blocks import AssistantBlock, Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from handrail.testing.wire_answers import ScriptedAnswer, anthropic_events

ROUNDS, REST_SECONDS = 7, 1.0
PAUSE = 0.05
"""Seconds before each piece of text before the command."""
PIECE = "words "
LEAD = Text(PIECE * 10)
REST = Text("and so on")
END = Reply((Text("Done."),))
CHANGES = "touch marker"
READS = "ls -l"
FLAGS = ("--allowedTools", "Bash(touch marker)")


class Gates(NamedTuple):
    """What the server waits for: before each piece of text, before the command's block, before the rest."""

    pieces: list[asyncio.Event]
    command: asyncio.Event
    rest: asyncio.Event


def scripted(command: str, *, leads: bool) -> tuple[Reply, Gates]:
    """An answer with a command, and the gates in it. With `leads`, text comes before the command."""
    content: tuple[AssistantBlock, ...] = (ToolUse("c", "Bash", {"command": command}), REST)
    if leads:
        content = (LEAD, *content)
    frames = [*anthropic_events(ScriptedAnswer(content, "", "m", 1, 1, len(PIECE)))]
    ends = [number + 1 for number, frame in enumerate(frames) if b"content_block_stop" in frame]
    deltas = [number for number, frame in enumerate(frames[: ends[0]]) if b"text_delta" in frame]
    gates = Gates([asyncio.Event() for _ in deltas], asyncio.Event(), asyncio.Event())
    numbers = [*deltas, ends[0] if leads else 0, ends[1] if leads else ends[0]]
    places = dict(zip(numbers, (*gates.pieces, gates.command, gates.rest), strict=True))
    return Reply(content, piece=len(PIECE), gates=places), gates


class Times(NamedTuple):
    """Milliseconds: the command's block to its start; beginning of the answer to its end, and to the next request."""

    start: float
    stream: float
    request: float


async def run(command: str, *, warm: bool = False, leads: bool = True) -> Times:
    """The times of one command."""
    call, gates = scripted(command, leads=leads)
    first = [Reply((ToolUse("w", "Bash", {"command": "pwd"}),))] if warm else []
    marker = Marker()
    async with ModelServer([*first, call, END]) as server:
        program = await asyncio.create_subprocess_exec(
            HANDRAIL, "-p", "hi", *FLAGS,
            env={**ENVIRONMENT, "ANTHROPIC_BASE_URL": server.url},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        began = await request_time(server, program, len(first) + 1)
        for gate in gates.pieces:
            await asyncio.sleep(PAUSE)
            gate.set()
        gates.command.set()
        sent = time.perf_counter()
        await asyncio.sleep(REST_SECONDS)
        gates.rest.set()
        ended = time.perf_counter()  # a timer is never early
        asked = await request_time(server, program, len(first) + 2)
        await program.wait()
    return Times((marker.close() - sent) * 1000, (ended - began) * 1000, (asked - began) * 1000)


class Marker:
    """A named pipe that a command touches. The time of a file that it makes would be up to 4 ms too early."""

    PATH = Path("marker")

    def __init__(self) -> None:
        os.mkfifo(self.PATH)
        self._end = os.open(self.PATH, os.O_RDONLY | os.O_NONBLOCK)
        self._touched = float("nan")
        asyncio.get_running_loop().add_reader(self._end, self._touch)

    def _touch(self) -> None:
        self._touched = time.perf_counter()
        asyncio.get_running_loop().remove_reader(self._end)

    def close(self) -> float:
        """When it was touched; not a number if it was not."""
        asyncio.get_running_loop().remove_reader(self._end)
        os.close(self._end)
        self.PATH.unlink()
        return self._touched


async def measure() -> dict[str, float]:
    """The first quartile of each row, in milliseconds."""
    seen: dict[str, list[float]] = {}
    for number in range(ROUNDS + 1):
        changing, warm = await run(CHANGES), await run(CHANGES, warm=True)
        reading, head = await run(READS), await run(CHANGES, leads=False)
        figures = {
            "floor": (await started([END], 0, sys.executable, "-c", FLOOR, "URL")).request,
            "stream": changing.stream,
            "changing command, first call": changing.start,
            "changing command, second call": warm.start,
            "changing command at the head": head.start,
            "changing command, next request": changing.request,
            "reading command, next request": reading.request,
        }
        for name, took in figures.items():
            seen.setdefault(name, []).extend([took] if number else [])  # the first round wrote the bytecode
    return {name: sorted(values)[ROUNDS // 4] for name, values in seen.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="handrail-stream-") as folder:
        os.chdir(folder)
        figures = asyncio.run(measure())
        os.chdir("/")
    if chosen.json:
        json.dump(figures, sys.stdout)
        return
    for name, value in figures.items():
        print(f"{name:<34} {value:9.1f} ms {value / figures['floor']:7.3f} of the floor")


if __name__ == "__main__":
    main()
