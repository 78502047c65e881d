"""
What the engine costs, beside the bare event loop in the same run.

    python -m benchmarks.engine_bench [--json]

Costs are CPU time of this process, so that other programs do not count; where waiting is the point, it is wall time.
Ours and the bare loop take turns, and the figures are those of the quiet moments (the first decile).
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic import BaseModel

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.dispatch.results import ResultStore
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.pool import Ingredients, assemble
from handrail.tools.tool import PromptView, Tool

ROUNDS, CALLS_PER_ROUND = 100, 200
SLEEP = 0.2


class AddInput(BaseModel):
    left: int
    right: int


class Trivial(Tool[AddInput]):
    """Does as little as a tool can."""

    name = "Trivial"
    input_model = AddInput

    def prompt(self, view: PromptView) -> str:
        return "Adds two numbers."

    def is_read_only(self, args: AddInput) -> bool:
        return True

    def is_concurrency_safe(self, args: AddInput) -> bool:
        return True

    async def call(self, args: AddInput, ctx: ToolContext) -> Output:
        return Output(text=str(args.left + args.right))


class Sleeping(Trivial):
    name = "Sleeping"

    async def call(self, args: AddInput, ctx: ToolContext) -> Output:
        await asyncio.sleep(SLEEP)
        return Output()


class Editing(Trivial):
    """Writes one of a few files, so that calls wait for each other."""

    name = "Editing"

    def is_read_only(self, args: AddInput) -> bool:
        return False

    def access(self, args: AddInput, run: RunContext) -> Access:
        return Access.of(writes=[f"/project/{args.right % 50}"])


class Stamping(Trivial):
    """Notes when it began."""

    name = "Stamping"
    began = 0.0

    async def call(self, args: AddInput, ctx: ToolContext) -> Output:
        self.began = time.perf_counter()
        return Output()


STAMPING = Stamping()
POOL = assemble(Ingredients(custom=(Trivial(), Sleeping(), Editing(), STAMPING)))
RUN = RunContext(Path.cwd())
STORE = ResultStore(Path("unused"))
RAILS = Rails(CarefulGate(trusting=True))


async def bare(calls: int) -> None:
    """The least that runs calls side by side and gives their results in order."""

    async def one(values: dict[str, int]) -> str:
        return str(values["left"] + values["right"])

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one({"left": 1, "right": number})) for number in range(calls)]
    assert len([task.result() for task in tasks]) == calls


async def ours(calls: int, name: str = "Trivial") -> None:
    """One answer through the whole pipeline: schema, permission, call, outcome."""
    async with ToolExecutor(POOL, RUN, STORE, rails=RAILS) as executor:
        for number in range(calls):
            executor.add(ToolUse(str(number), name, {"left": 1, "right": number}))
        outcomes = [outcome async for outcome in executor.rest()]
    assert len(outcomes) == calls
    assert not outcomes[-1].result.is_error


async def cost(turn: Callable[[], Awaitable[None]], calls: int, turns: int) -> float:
    """Microseconds of CPU per call."""
    begin = time.process_time()
    for _ in range(turns):
        await turn()
    return (time.process_time() - begin) / turns / calls * 1e6


def quiet(values: list[float]) -> float:
    return sorted(values)[len(values) // 10]


async def per_call(calls: int) -> tuple[float, float]:
    """Bare and ours, taking turns."""
    pairs = [
        (
            await cost(lambda: bare(calls), calls, CALLS_PER_ROUND // calls),
            await cost(lambda: ours(calls), calls, CALLS_PER_ROUND // calls),
        )
        for _ in range(ROUNDS)
    ]
    return quiet([pair[0] for pair in pairs]), quiet([pair[1] for pair in pairs])


async def flatness(calls: int = 100_000, part: int = 2_000) -> tuple[float, float]:
    """The first calls of a long run and the last ones, in turns of ten."""
    parts = [await cost(lambda: ours(10), 10, part // 10 // 10) for _ in range(calls // part * 10)]
    return quiet(parts[10:60]), quiet(parts[-50:])


async def queued(name: str) -> tuple[float, float]:
    """A hundred calls in one answer, and ten thousand."""
    few = quiet([await cost(lambda: ours(100, name), 100, 5) for _ in range(20)])
    many = min([await cost(lambda: ours(10_000, name), 10_000, 1) for _ in range(3)])
    return few, many


async def side_by_side() -> float:
    """Seconds until eight sleeping calls are all back."""
    begin = time.perf_counter()
    await ours(8, "Sleeping")
    return time.perf_counter() - begin


async def early_start() -> float:
    """Seconds from the complete block to the start of the call, while the stream goes on."""
    async with ToolExecutor(POOL, RUN, STORE, rails=RAILS) as executor:
        await asyncio.sleep(0.01)
        complete = time.perf_counter()
        executor.add(ToolUse("1", "Stamping", {"left": 1, "right": 2}))
        await asyncio.sleep(0.01)  # the rest of the answer
        async for _ in executor.rest():
            pass
    return STAMPING.began - complete


async def measure() -> dict[str, float]:
    await ours(10)
    figures: dict[str, float] = {}
    for calls in (1, 10):
        figures[f"bare, {calls} per turn (us)"], figures[f"ours, {calls} per turn (us)"] = await per_call(calls)
        figures[f"ours / bare, {calls} per turn"] = (
            figures[f"ours, {calls} per turn (us)"] / figures[f"bare, {calls} per turn (us)"]
        )
    first, last = await flatness()
    figures |= {"first calls of 100,000 (us)": first, "last calls of 100,000 (us)": last, "last / first": last / first}
    for name in ("Trivial", "Editing"):
        few, many = await queued(name)
        figures |= {f"{name}: 100 queued (us)": few, f"{name}: 10,000 queued (us)": many, f"{name}: ratio": many / few}
    figures["eight sleeps of 200 ms, wall / 200 ms"] = min([await side_by_side() for _ in range(5)]) / SLEEP
    figures["start of a read-only call after its block (ms)"] = 1e3 * quiet([await early_start() for _ in range(20)])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args()
    figures = asyncio.run(measure())
    if asked.json:
        print(json.dumps(figures, indent=2))
        return
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:<{width}}  {value:8.2f}")


if __name__ == "__main__":
    main()
