"""
What an Edit of a large file costs, beside plain read, replace and write in the same run; and how much memory it takes.

    python -m benchmarks.edit_bench [--json]

An Edit is a whole call through the executor, undo journal included, and every old content is new to the journal. Ours
and the plain way take turns; the figures are those of the quiet moments (the first decile). CPU time counts all
threads, of which the one that hashes runs beside the others where a second core is free.
"""

import argparse
import asyncio
import hashlib
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, TypeAlias

from handrail.builtin.edit import Edit
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.dispatch.results import ResultStore
from handrail.session.services import default_services
from handrail.testing import FixedApprover
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome, Status
from handrail.tools.pool import Ingredients, assemble

ROUNDS = 25
LINE = "    total = some_function(argument, {number})  # what this line is about\n"


def text(size: int, mark: str, end: str = "\n", letters: str = "") -> bytes:
    """Lines that differ, with one marked line in the middle."""
    line = LINE.replace("\n", f" {letters}{end}")
    count = size // len(line.format(number=100_000).encode())
    lines = [line.format(number=number) for number in range(100_000, 100_000 + count)]
    lines[count // 2] = f"    marked = {mark}{end}"
    return "".join(lines).encode()


Times: TypeAlias = tuple[float, float]
"""Seconds on the wall, and of CPU."""


def now() -> Times:
    return time.perf_counter(), time.process_time()


def since(started: Times) -> Times:
    wall, cpu = now()
    return wall - started[0], cpu - started[1]


class Bench:
    """A folder with a file, and an agent that may edit it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "file.py"
        self.run = RunContext(folder)
        services = default_services({"HANDRAIL_STATE_DIR": str(folder / "state")}, folder)
        self._pool = assemble(Ingredients(custom=(Edit(services),)))
        self._store = ResultStore(folder / "results")
        self._rails = Rails(CarefulGate(FixedApprover(allow=True)))

    def put(self, content: bytes) -> None:
        """The file, as if it had been read some time ago."""
        self.path.write_bytes(content)
        time.sleep(0.03)
        self.run.files.note(self.path, self.path.stat(), hashlib.sha256(content).hexdigest())

    def edit(self, old: str, new: str) -> Outcome:
        return asyncio.run(self._edit({"file_path": "file.py", "old_string": old, "new_string": new}))

    async def _edit(self, arguments: dict[str, Any]) -> Outcome:
        async with ToolExecutor(self._pool, self.run, self._store, rails=self._rails) as executor:
            executor.add(ToolUse("call-1", "Edit", arguments))
            return await anext(executor.rest())

    def timed(self, old: str, new: str) -> Times:
        async def one() -> Times:
            started = now()
            outcome = await self._edit({"file_path": "file.py", "old_string": old, "new_string": new})
            took = since(started)
            assert outcome.status is Status.OK, outcome.result
            return took

        return asyncio.run(one())


def plain(path: Path, old: bytes, new: bytes) -> Times:
    started = now()
    with path.open("rb") as file:
        data = file.read()
    data = data.replace(old, new)
    with path.open("wb") as file:
        file.write(data)
    return since(started)


def compare(size: int, end: str, letters: str = "", *, again: bool = False) -> tuple[Times, Times]:
    """Seconds of our way and of the plain way. `again`: the file was edited just before, not read."""
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(os.path.realpath(name)))
        other = bench.path.with_name("other.py")
        for number in range(ROUNDS):
            content = text(size, f"first_{number}", end, letters)
            other.write_bytes(content)
            bench.put(content)
            theirs.append(plain(other, f"first_{number}".encode(), f"second_{number}".encode()))
            if again:
                bench.timed(f"marked = first_{number}\n", f"marked = {number}\n")
                ours.append(bench.timed(f"marked = {number}\n", "marked = done\n"))
            else:
                ours.append(bench.timed(f"marked = first_{number}\n", f"marked = second_{number}\n"))
    return quiet(ours), quiet(theirs)


def quiet(values: list[Times]) -> Times:
    wall, cpu = (sorted(kind)[len(kind) // 10] for kind in zip(*values, strict=True))
    return wall, cpu


def memory(size: int) -> float:
    """Megabytes that an edit of a file of this size takes at its peak, in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with tempfile.TemporaryDirectory() as name:
            bench = Bench(Path(os.path.realpath(name)))
            bench.path.write_bytes(b"")
            with bench.path.open("ab") as file:
                part = text(1_000_000, "other")
                for _ in range(size // len(part) // 2):
                    file.write(part)
                file.write(b"the only line\n")
                for _ in range(size // len(part) // 2):
                    file.write(part)
            with bench.path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            time.sleep(0.03)
            bench.run.files.note(bench.path, bench.path.stat(), digest)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            outcome = bench.edit("the only line\n", "the changed line\n")
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            os.write(writer, f"{(after - before) / 1024 if outcome.status is Status.OK else -1}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    return float(os.read(reader, 100))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    grown = memory(100_000_000)
    cases = {
        "10 MB": ("\n", "", False),
        "10 MB, edited just before": ("\n", "", True),
        "10 MB, CRLF": ("\r\n", "", False),
        "10 MB, every line with umlauts": ("\n", "\u00e4\u00f6\u00fc", False),
    }
    figures = {name: compare(10_000_000, end, letters, again=again) for name, (end, letters, again) in cases.items()}
    figures["1 kB"] = compare(1_000, "\n")
    if chosen.json:
        print(json.dumps({"seconds": figures, "megabytes": grown}))
        return
    for name, (ours, theirs) in figures.items():
        wall = f"{ours[0] * 1000:7.2f} ms, plain {theirs[0] * 1000:7.2f} ms: {ours[0] / theirs[0]:.2f} times"
        print(f"{name:32} {wall}; CPU {ours[1] / theirs[1]:.2f} times")
    print(f"{'100 MB, memory at the peak':32} {grown:7.1f} MB more")


if __name__ == "__main__":
    main()
