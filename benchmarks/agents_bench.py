"""
What sub-agents and skills cost: starting one over a plain turn, the CPU of a turn with twenty at once, and the CPU of a
start with five hundred skills over one with none.

    python benchmarks/agents_bench.py
"""

import asyncio
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from handrail import Agent
from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import UserMessage
from handrail.conversation.stream import BlockEnd, BlockStart, MessageEnd, MessageStart, StreamEvent
from handrail.extensions.skill_list import skill_list
from handrail.session.spec import SessionHost, SessionSpec

ROUNDS = 15
MANY = 20
SKILLS = 500


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


def write_skills(home: Path) -> None:
    """As many skills as some people have, with a sentence each."""
    for number in range(SKILLS):
        file = home / ".claude/skills" / f"skill-{number:03}" / "SKILL.md"
        file.parent.mkdir(parents=True)
        about = f"Does the thing number {number} with care, when it is asked for by name"
        file.write_text(f"---\nname: skill-{number:03}\ndescription: {about}\n---\nText {number}\n")


async def start(base: Path, home: str) -> tuple[float, int]:
    """CPU seconds from nothing to the first answer, and the bytes of the list of skills. Meant for a new process."""
    gc.disable()  # as the program does while it starts
    env = {"HOME": str(base / home), "HANDRAIL_STATE_DIR": str(base / "state"), "PATH": "/usr/bin:/bin"}
    used = time.process_time()
    agent = Agent.from_spec(SessionSpec(base / "work"), env, SessionHost(model=Delegating(0)))
    await agent.ask("main")
    used = time.process_time() - used
    size = len(skill_list(agent.session.skills.skills.heads.values()).encode())
    await agent.aclose()
    return used, size


def measure_skills(base: Path) -> tuple[float, int]:
    """CPU seconds that the skills cost, by the medians of starts in turn, and the bytes that the model reads."""
    for name in ("work", "many", "none"):
        (base / name).mkdir()
    write_skills(base / "many")
    used: dict[str, list[float]] = {"many": [], "none": []}
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    size = 0
    for number in range(ROUNDS + 1):
        for home, times in used.items():
            ended = subprocess.run(
                [sys.executable, "-m", "benchmarks.agents_bench", str(base), home],
                check=True,
                capture_output=True,
                text=True,
                env=env,
            )
            seconds, length = ended.stdout.split()
            if number:  # the first start fills the caches, also that of compiled modules
                times.append(float(seconds))
            size = max(size, int(length))
    return statistics.median(used["many"]) - statistics.median(used["none"]), size


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
    with tempfile.TemporaryDirectory() as name:
        seconds, size = measure_skills(Path(name))
    print(f"{SKILLS} skills: {seconds * 1000:.1f} ms of CPU at start (at most 10), {size:,} bytes (at most 8,000)")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*asyncio.run(start(Path(sys.argv[1]), sys.argv[2])))
    else:
        asyncio.run(main())
