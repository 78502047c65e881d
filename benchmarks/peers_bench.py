"""
The same calls through other frameworks, and through ours, in one run.

    make bench-peers        (sets up an environment of their own: .venv-peers)

langgraph: its ToolNode alone, in a graph of one node. pydantic-ai: a run of an agent whose model is a function, because
its calls cannot be had without a run. Ours: an executor per answer, and as "handrail Agent" a whole session with a
scripted model. Taken in turns:

    1 per turn, 10 per turn    microseconds of CPU per trivial call
    eight sleeps               milliseconds until eight calls that sleep 200 ms are back
    one process                milliseconds of CPU of a process that makes one call, from its start to its end
    500 at once                microseconds of CPU per turn, 500 runs with one call each side by side
"""

import argparse
import asyncio
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from typing import Any

from benchmarks.agent_bench import conversation
from benchmarks.engine_bench import SLEEP, bare, cost, ours, quiet
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

ROUNDS, CALLS_PER_ROUND, PROCESSES, MANY = 12, 40, 7, 500


async def trivial(left: int, right: int) -> str:
    """Adds two numbers."""
    return str(left + right)


async def sleeping(left: int, right: int) -> str:
    """Adds two numbers after a while."""
    await asyncio.sleep(SLEEP)
    return str(left + right)


def tool_node() -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([tool(trivial), tool(sleeping)]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    return graph.compile()


def agent() -> Any:
    """Its model asks for as many calls as the prompt says, of the tool that it names, and then for no more."""

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        name, calls = messages[0].parts[-1].content.split()
        return ModelResponse([ToolCallPart(name, {"left": 1, "right": n}, str(n)) for n in range(int(calls))])

    return Agent(FunctionModel(answer), tools=[trivial, sleeping])


NODE, AGENT = tool_node(), agent()


async def langgraph(calls: int, name: str = "trivial") -> None:
    asked = [{"name": name, "args": {"left": 1, "right": n}, "id": str(n)} for n in range(calls)]
    state = await NODE.ainvoke({"messages": [AIMessage("", tool_calls=asked)]})
    assert len(state["messages"]) == calls + 1
    assert state["messages"][-1].content == str(calls)


async def pydantic_ai(calls: int, name: str = "trivial") -> None:
    run = await AGENT.run(f"{name} {calls}")
    assert [part.content for part in run.all_messages()[2].parts] == [str(1 + n) for n in range(calls)]


async def our_agent(turns: int = 1) -> None:
    await conversation(turns, tempfile.gettempdir())


PEERS: dict[str, Callable[[int], Awaitable[None]]] = {
    "bare loop": bare,
    "handrail": ours,
    "langgraph": langgraph,
    "pydantic-ai": pydantic_ai,
}
SLEEPS: dict[str, Callable[[], Awaitable[None]]] = {
    "handrail": partial(ours, 8, "Sleeping"),
    "langgraph": partial(langgraph, 8, "sleeping"),
    "pydantic-ai": partial(pydantic_ai, 8, "sleeping"),
}
RUNS: dict[str, Callable[[], Awaitable[None]]] = {
    "handrail": partial(ours, 1),
    "handrail Agent": our_agent,
    "langgraph": partial(langgraph, 1),
    "pydantic-ai": partial(pydantic_ai, 1),
}
ONE_CALL = {
    "bare interpreter": "pass",
    "handrail": """
import asyncio
from pathlib import Path
from handrail import ResultStore, ToolExecutor, ToolUse, Ingredients, RunContext, tool
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.tools.pool import assemble

@tool(read_only=True)
async def add(left: int, right: int) -> str:
    "Adds two numbers."
    return str(left + right)

async def main():
    pool, rails = assemble(Ingredients(custom=(add,))), Rails(CarefulGate(trusting=True))
    async with ToolExecutor(pool, RunContext(Path.cwd()), ResultStore(Path("unused")), rails=rails) as executor:
        executor.add(ToolUse("1", "add", {"left": 1, "right": 2}))
        assert [each.result.text async for each in executor.rest()] == ["3"]

asyncio.run(main())
""",
    "handrail Agent": """
import asyncio
from handrail import Agent, Text, ToolUse, tool
from handrail.testing import ScriptedModel

@tool(read_only=True)
async def add(left: int, right: int) -> str:
    "Adds two numbers."
    return str(left + right)

async def main():
    model = ScriptedModel([[ToolUse("1", "add", {"left": 1, "right": 2})], [Text("done")]])
    async with Agent(model, tools=[add]) as agent:
        assert (await agent.ask("go")).text == "done"

asyncio.run(main())
""",
    "langgraph": """
import asyncio
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

async def add(left: int, right: int) -> str:
    "Adds two numbers."
    return str(left + right)

graph = StateGraph(MessagesState)
graph.add_node("tools", ToolNode([tool(add)]))
graph.add_edge(START, "tools")
graph.add_edge("tools", END)
asked = [{"name": "add", "args": {"left": 1, "right": 2}, "id": "1"}]
state = asyncio.run(graph.compile().ainvoke({"messages": [AIMessage("", tool_calls=asked)]}))
assert state["messages"][-1].content == "3"
""",
    "pydantic-ai": """
import asyncio
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

async def add(left: int, right: int) -> str:
    "Adds two numbers."
    return str(left + right)

def answer(messages, info):
    call = ToolCallPart("add", {"left": 1, "right": 2}, "1")
    return ModelResponse([TextPart("done") if len(messages) > 1 else call])

run = asyncio.run(Agent(FunctionModel(answer), tools=[add]).run("go"))
assert run.all_messages()[2].parts[0].content == "3"
""",
}
"""Programs that make one call, as short as each framework allows."""


def process_cost(program: str) -> float:
    """Milliseconds of CPU of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


async def wall(run: Callable[[], Awaitable[None]]) -> float:
    """Milliseconds until a run is over."""
    begin = time.perf_counter()
    await run()
    return (time.perf_counter() - begin) * 1000


async def at_once(run: Callable[[], Awaitable[None]]) -> float:
    """Microseconds of CPU per run, many side by side."""
    begin = time.process_time()
    await asyncio.gather(*[run() for _ in range(MANY)])
    return (time.process_time() - begin) / MANY * 1e6


async def measure() -> dict[str, dict[str, float]]:
    """The figures of each row by framework."""
    figures: dict[str, dict[str, float]] = {}
    for calls in (1, 10):
        turns = CALLS_PER_ROUND // calls
        rounds = [
            {name: await cost(partial(run, calls), calls, turns) for name, run in PEERS.items()} for _ in range(ROUNDS)
        ]
        figures[f"{calls} per turn (us)"] = {name: quiet([each[name] for each in rounds]) for name in PEERS}
    sleeps = [{name: await wall(run) for name, run in SLEEPS.items()} for _ in range(ROUNDS)]
    figures["eight sleeps (ms)"] = {name: quiet([each[name] for each in sleeps]) for name in SLEEPS}
    gc.freeze()
    many = [{name: await at_once(run) for name, run in RUNS.items()} for _ in range(3)]
    figures["500 at once (us)"] = {name: min(each[name] for each in many) for name in RUNS}
    one = [{name: process_cost(program) for name, program in ONE_CALL.items()} for _ in range(PROCESSES + 1)]
    figures["one process (ms)"] = {name: min(each[name] for each in one[1:]) for name in ONE_CALL}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args()
    figures = asyncio.run(measure())
    if asked.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"langgraph {version('langgraph')}, pydantic-ai {version('pydantic-ai-slim')}")
    for row, costs in figures.items():
        for name, value in costs.items():
            print(f"{row:<18} {name:<18} {value:9.1f}   {value / costs['handrail']:6.1f} x handrail")


if __name__ == "__main__":
    main()
