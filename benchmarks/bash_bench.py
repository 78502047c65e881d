"""
What a command costs beside a bare spawn of the same: python benchmarks/bash_bench.py

Calls go through the executor and the gate of a folder, as a model's do.
"""

import asyncio
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from benchmarks.folder_gate import folder_gate

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, Gate, Rails
from handrail.dispatch.results import ResultStore
from handrail.session.services import default_services
from handrail.session.tools import make_catalog
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome

ROUNDS = 60
GIGABYTE = "head -c 1073741824 /dev/zero"


def spawn(argv: list[str], folder: Path) -> None:
    subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)


def remove(path: str) -> None:
    Path(path).unlink()


class Bench:
    """A folder and the tools of a session in it."""

    def __init__(self, folder: Path) -> None:
        env = {**os.environ, "HANDRAIL_STATE_DIR": str(folder / "state")}
        self.work = Path(os.path.realpath(folder / "work"))
        self.work.mkdir()
        services = default_services(env, self.work)
        self.catalog: Catalog = make_catalog(variables=env, services=lambda: services)
        self.careful = folder_gate(self.work, env)
        self.store = ResultStore(folder / "results")

    async def calls(self, commands: list[str], gate: Gate) -> list[Outcome]:
        run = RunContext(self.work)
        async with ToolExecutor(self.catalog.pool, run, self.store, rails=Rails(gate)) as executor:
            for at, command in enumerate(commands):
                executor.add(ToolUse(f"c{at}", "Bash", {"command": command}))
            outcomes = [outcome async for outcome in executor.rest()]
        assert not any(outcome.result.is_error for outcome in outcomes), outcomes
        return outcomes


async def measured(*actions: Callable[[], Awaitable[object]]) -> list[tuple[float, float]]:
    """Milliseconds of each, median and the best tenth, taken in turns so that noise hits all alike."""
    samples: list[list[float]] = [[] for _ in actions]
    for _ in range(ROUNDS):
        for kept, action in zip(samples, actions, strict=True):
            started = time.perf_counter()
            await action()
            kept.append((time.perf_counter() - started) * 1000)
    return [(statistics.median(kept), statistics.quantiles(kept, n=10)[0]) for kept in samples]


def eight_bare(folder: Path) -> float:
    """Milliseconds of the same by eight bare spawns: what this machine can do at the moment."""
    started = time.perf_counter()
    argv = ["/bin/bash", "-c", "sleep 0.2"]
    spawned = [
        subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(8)
    ]
    for each in spawned:
        each.communicate()
    return (time.perf_counter() - started) * 1000


async def bare(argv: list[str], folder: Path) -> None:
    spawn(argv, folder)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        started = time.perf_counter()
        await bench.calls(["true"], bench.careful)
        print(f"first call, all imports and the supervisor included: {(time.perf_counter() - started) * 1000:.0f} ms")

        (floor, best_floor), (ours, best) = await measured(
            partial(bare, ["/bin/bash", "-c", "true"], bench.work), partial(bench.calls, ["true"], bench.careful)
        )
        print(f"Bash true: {ours:.1f} ms, bare bash {floor:.1f} ms, over {ours - floor:.1f} ms (bar 4)")
        print(f"  the best tenth: {best:.1f} ms, bare bash {best_floor:.1f} ms, over {best - best_floor:.1f} ms")

        times, floors = [], []
        for _ in range(10):
            floors.append(eight_bare(bench.work))
            started = time.perf_counter()
            await bench.calls(["sleep 0.2"] * 8, bench.careful)
            times.append((time.perf_counter() - started) * 1000)
        print(
            f"eight sleeps of 200 ms: {statistics.median(times):.0f} ms (bar 225), best {min(times):.0f}; "
            f"eight bare spawns {statistics.median(floors):.0f} ms, best {min(floors):.0f}"
        )

        await gigabyte(bench)


async def gigabyte(bench: Bench) -> None:
    """One gigabyte of output: time beside a plain file, and memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plain, kept = [], []
    for _ in range(5):
        target = bench.work / "plain"
        started = time.perf_counter()
        spawn(["/bin/bash", "-c", f"{GIGABYTE} | cat > {target}"], bench.work)
        plain.append(time.perf_counter() - started)
        target.unlink()
        started = time.perf_counter()
        (outcome,) = await bench.calls([GIGABYTE], CarefulGate(trusting=True))
        kept.append(time.perf_counter() - started)
        assert outcome.output is not None
        remove(outcome.output.data["persistedOutputPath"])
    ratio, best = statistics.median(kept) / statistics.median(plain), min(kept) / min(plain)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"1 GB of output: {statistics.median(kept):.2f} s, cat > file {statistics.median(plain):.2f} s, "
        f"ratio {ratio:.2f} (bar 2), of the best {best:.2f}, memory +{grown:.0f} MB (bar 64)"
    )


if __name__ == "__main__":
    asyncio.run(main())
