"""
One call per turn through `Agent` with a scripted model, beside the bare event loop and the executor alone; what opening
an `Agent` takes; and many conversations beside one.

    python -m benchmarks.agent_bench [--json]

Costs are CPU time of this process; all sides take turns, and the figures are those of the first decile. The cost of a
turn is what further turns add to a conversation, so that opening and closing it do not count.
"""

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

from benchmarks.engine_bench import bare, ours, quiet

from handrail import Agent, tool
from handrail.conversation.blocks import Text, ToolUse
from handrail.lazy import NEW_OBJECTS
from handrail.testing import ScriptedModel

ROUNDS, FEW, TURNS, MANY = 40, 10, 50, 500


@tool(read_only=True)
async def add(left: int, right: int) -> str:
    """Adds two numbers."""
    return str(left + right)


def script(turns: int) -> ScriptedModel:
    """So many turns with one call each, then a word."""
    calls = [[ToolUse(str(n), "add", {"left": 1, "right": n})] for n in range(turns)]
    return ScriptedModel([*calls, [Text("Done.")]])


async def conversation(turns: int, folder: str) -> None:
    async with Agent(script(turns), tools=[add], cwd=folder) as agent:
        answer = await agent.ask("Add.")
    assert answer.text == "Done."


async def bare_loop() -> None:
    """As many calls as a conversation has, one after the other, with nothing but the event loop."""
    for _ in range(TURNS):
        await bare(1)


async def executor_alone() -> None:
    """As many answers with one call as a conversation has, one after the other."""
    for _ in range(TURNS):
        await ours(1)


async def cpu(work: Callable[[], Awaitable[object]], parts: int) -> float:
    """Microseconds of CPU per part."""
    begin = time.process_time()
    await work()
    return (time.process_time() - begin) / parts * 1e6


async def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="handrail-agent-") as folder:
        await conversation(TURNS, folder)
        least, alone, short, long = [], [], [], []
        for _ in range(ROUNDS):
            least.append(await cpu(bare_loop, TURNS))
            alone.append(await cpu(executor_alone, TURNS))
            short.append(await cpu(lambda: conversation(FEW, folder), 1))
            long.append(await cpu(lambda: conversation(FEW + TURNS, folder), 1))
        turn = (quiet(long) - quiet(short)) / TURNS
        gc.freeze()  # as the command line program does after its set-up, like the next line
        gc.set_threshold(NEW_OBJECTS)
        one = quiet([await cpu(lambda: conversation(TURNS, folder), TURNS) for _ in range(ROUNDS)])
        many = await cpu(lambda: asyncio.gather(*[conversation(10, folder) for _ in range(MANY)]), MANY * 10)
        few = quiet([await cpu(lambda: conversation(10, folder), 10) for _ in range(ROUNDS)])
    return {
        "executor alone, one call per answer (us)": quiet(alone),
        "through Agent, one call per turn (us)": turn,
        "through Agent / bare event loop": turn / quiet(least),
        "through Agent / executor": turn / quiet(alone),
        "an Agent: opening, a prompt, closing (us)": quiet(short) - FEW * turn,
        "a conversation after gc.freeze, a turn (us)": one,
        f"{MANY} conversations at once, a turn (us)": many,
        f"{MANY} conversations / one": many / few,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    figures = asyncio.run(measure())
    if chosen.json:
        json.dump(figures, sys.stdout)
        return
    for name, value in figures.items():
        print(f"{name:<44} {value:10.2f}")


if __name__ == "__main__":
    main()
