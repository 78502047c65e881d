"""
What the first calls of a process take, through a real session and a model server on loopback.

    python -m benchmarks.first_call_bench [--json]

From the answer with the calls to the next request: the model answers at once, or thinks for 0.8 s first, in which
handrail loads what a call needs. Then the turns after the first one. All are given in milliseconds and beside the floor
(a program with httpx2, from its start to its request), which takes turns with them.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.start_bench import FLOOR, HANDRAIL, started

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import Reply

ROUNDS, TURNS, SLEEP = 9, 10, 0.2
END = Reply((Text("Done."),))
FLAGS = ("--allowedTools", "Bash(sleep *)", "--permission-mode", "acceptEdits")


def read(number: int = 0) -> ToolUse:
    """A call of Read; each has a file of its own."""
    return ToolUse(f"read{number}", "Read", {"file_path": f"{number}.txt"})


def sleep(number: int) -> ToolUse:
    """A command that takes 0.2 s."""
    return ToolUse(f"sleep{number}", "Bash", {"command": f"sleep {SLEEP}"})


ROWS: dict[str, tuple[list[Reply], float]] = {
    "one read, model answers at once": ([Reply((read(),)), END], 0),
    "one read, model thought for 0.8 s": ([Reply((read(),)), END], 0.8),
    "ten reads, at once": ([Reply(tuple(map(read, range(10)))), END], 0),
    "ten reads, after 0.8 s": ([Reply(tuple(map(read, range(10)))), END], 0.8),
    "eight sleeps of 0.2 s, at once": ([Reply(tuple(map(sleep, range(8)))), END], 0),
    "eight sleeps of 0.2 s, after 0.8 s": ([Reply(tuple(map(sleep, range(8)))), END], 0.8),
    "60 kB argument, at once": (
        [Reply((ToolUse("w", "Write", {"file_path": "new.txt", "content": "line of text\n" * 4_600}),)), END],
        0,
    ),
    "one read, then ten": ([Reply((read(),)), Reply(tuple(map(read, range(10)))), END], 0.8),
    "ten turns with one read each": ([*(Reply((read(number),)) for number in range(TURNS)), END], 0.8),
}


async def measure() -> dict[str, float]:
    """The first quartile of each row, in milliseconds."""
    seen: dict[str, list[float]] = {name: [] for name in ("floor", *ROWS)}
    for number in range(ROUNDS + 1):
        figures = {"floor": (await started([END], 0, sys.executable, "-c", FLOOR, "URL")).request}
        for name, (replies, thinking) in ROWS.items():
            Path("new.txt").unlink(missing_ok=True)  # noqa: ASYNC240  # Write wants to read what is there
            figures[name] = (await started(list(replies), thinking, HANDRAIL, "-p", "hi", *FLAGS)).calling
        for name, took in figures.items():
            seen[name] += [took] if number else []  # the first one wrote the bytecode
    usual = {name: sorted(values)[ROUNDS // 4] for name, values in seen.items()}
    many, one = usual.pop("ten turns with one read each"), usual["one read, model thought for 0.8 s"]
    usual["ten reads, warm"] = usual.pop("one read, then ten") - one
    usual["a turn with one read, the second to the tenth"] = (many - one) / (TURNS - 1)
    return usual | {"sleep": SLEEP * 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="handrail-first-call-") as folder:
        os.chdir(folder)
        for number in range(TURNS):
            Path(f"{number}.txt").write_text("a line of text\n" * 40)
        figures = asyncio.run(measure())
        os.chdir("/")
    if chosen.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:<48} {value:9.1f} ms {value / figures['floor']:7.2f}")


if __name__ == "__main__":
    main()
