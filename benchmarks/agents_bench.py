"""
What sub-agents cost: starting one over a plain turn, and the CPU of a turn with twenty at once.

    python benchmarks/agents_bench.py
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from handrail import Agent
from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import UserMessage
from handrail.conversation.stream import BlockEnd, BlockStart, MessageEnd, MessageStart, StreamEvent

ROUNDS = 15
MANY = 20


class Delegating:
    """Asks for so many agents in its first answer; an agent answers at once."""

    def __init__(self, agents: int) -> None:
        self.agents = agents
        self._messages = 0

    async def stream(self, request: Any) -> AsyncGenerator[StreamEvent, None]:
        said = [block for each in request.history.messages if isinstance(each, UserMessage) for block in each.content]
        is_main = isinstance(said[0], Text) and said[0].text.startswith("main")
        is_first = isinstance(said[-1], Text) and said[-1].text.startswith("main")
        self._messages += 1
        yield MessageStart(f"m{self._messages}", "scripted")
        blocks: list[Text | ToolUse] = [Text("Done.")]
        if is_main and is_first:
            task = {"description": "d", "prompt": "do it", "subagent_type": "Explore", "run_in_background": False}
            blocks = [ToolUse(f"a{self._messages}.{n}", "Agent", task) for n in range(self.agents)] or blocks
        for slot, block in enumerate(blocks):
            yield BlockStart(slot, "text" if isinstance(block, Text) else "tool_use")
            yield BlockEnd(slot, block)
        yield MessageEnd("end_turn")


async def measure(agents: int, folder: Path) -> tuple[float, float]:
    """Seconds and CPU seconds of a prompt whose answer starts so many agents, the median."""
    seconds, cpu = [], []
    async with Agent(Delegating(agents), cwd=folder, mode="acceptEdits") as agent:
        for number in range(ROUNDS):
            start, used = time.perf_counter(), time.process_time()
            await agent.ask(f"main {number}")
            seconds.append(time.perf_counter() - start)
            cpu.append(time.process_time() - used)
            await agent.clear()
    return statistics.median(seconds), statistics.median(cpu)


async def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        plain, plain_cpu = await measure(0, Path(name))
        one, one_cpu = await measure(1, Path(name))
        _, many_cpu = await measure(MANY, Path(name))
    # a prompt with agents has two turns of its own, and one for each agent
    print(
        f"starting a sub-agent: {(one - 3 * plain) * 1000:.1f} ms over three plain turns ({plain * 1000:.1f} ms each)"
    )
    each_one, each_many = one_cpu - 2 * plain_cpu, (many_cpu - 2 * plain_cpu) / MANY
    print(f"CPU of an agent's turn: {each_one * 1000:.1f} ms alone, {each_many * 1000:.1f} ms with {MANY} at once")
    print(f"ratio: {each_many / each_one:.2f} (at most 1.3)")


if __name__ == "__main__":
    asyncio.run(main())
