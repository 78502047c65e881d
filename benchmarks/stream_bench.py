"""
Calls inside a stream that goes on: when they start, and when the next request comes.

    python -m benchmarks.stream_bench [--json]

The model's answer holds one complete command and then streams on for 1.5 s. Through real sessions (`handrail -p`) and a
model server on loopback: from the end of the command's block to its start, as the time of a file that it makes, and to
the next request. A command that changes something and one that only reads, as the first call of the process and as the
second. The floor is a program with httpx2, from its start to its request, in the same run.
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

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from handrail.testing.wire_answers import ScriptedAnswer, anthropic_events

ROUNDS, STREAM = 7, 1.5
REST = Text("and so on")
END = Reply((Text("Done."),))
CHANGES = "touch marker"
MARKER = Path("marker")
READS = "ls -l"
FLAGS = ("--allowedTools", "Bash(touch marker)")


def frames_until_call_ends(answer: Reply) -> int:
    """How many frames of the answer come up to the end of its first block."""
    frames = [*anthropic_events(ScriptedAnswer(answer.content, "", "m", 1, 1, 0))]
    return next(number for number, frame in enumerate(frames) if b"content_block_stop" in frame) + 1


class Times(NamedTuple):
    """Milliseconds from the end of the command's block: to its start, to the end of the stream, to the next request."""

    start: float
    stream: float
    request: float


async def run(command: str, *, warm: bool) -> Times:
    """The times of one command."""
    forget_marker()
    rest = asyncio.Event()
    call = Reply((ToolUse("c", "Bash", {"command": command}), REST))
    call = Reply(call.content, gates={frames_until_call_ends(call): rest})
    first = [Reply((ToolUse("w", "Bash", {"command": "pwd"}),))] if warm else []
    async with ModelServer([*first, call, END]) as server:
        program = await asyncio.create_subprocess_exec(
            HANDRAIL, "-p", "hi", *FLAGS,
            env={**ENVIRONMENT, "ANTHROPIC_BASE_URL": server.url},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        sent, wall = await request_time(server, program, len(first) + 1), time.time()
        await asyncio.sleep(STREAM)
        rest.set()
        ended = time.perf_counter()  # a timer is never early
        asked = await request_time(server, program, len(first) + 2)
        await program.wait()
    return Times((marker_time() - wall) * 1000, (ended - sent) * 1000, (asked - sent) * 1000)


def forget_marker() -> None:
    MARKER.unlink(missing_ok=True)


def marker_time() -> float:
    """When the command made its file; not a number if it makes none."""
    return MARKER.stat().st_mtime if MARKER.exists() else float("nan")


async def measure() -> dict[str, float]:
    """The first quartile of each row, in milliseconds."""
    seen: dict[str, list[float]] = {}
    for number in range(ROUNDS + 1):
        changing, warm = await run(CHANGES, warm=False), await run(CHANGES, warm=True)
        reading = await run(READS, warm=False)
        figures = {
            "floor": (await started([END], 0, sys.executable, "-c", FLOOR, "URL")).request,
            "stream": changing.stream,
            "changing command, first call": changing.start,
            "changing command, second call": warm.start,
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
