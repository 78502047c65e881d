"""
The same trivial call through other frameworks, and through ours, in one run.

    make bench-peers        (sets up an environment of their own: .venv-peers)

langgraph: its ToolNode alone, in a graph of one node. pydantic-ai: a run of an agent whose model is a function, because
its calls cannot be had without a run. Ours: an executor per answer. Costs are CPU time per call, taken in turns.
"""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from typing import Any

from benchmarks.engine_bench import bare, cost, ours, quiet
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

ROUNDS, CALLS_PER_ROUND = 12, 40


async def trivial(left: int, right: int) -> str:
    """Adds two numbers."""
    return str(left + right)


def tool_node() -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([tool(trivial)]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    return graph.compile()


def agent() -> Any:
    """Its model asks for as many calls as the prompt says, and then for no more."""

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        calls = int(messages[0].parts[-1].content)
        return ModelResponse([ToolCallPart("trivial", {"left": 1, "right": n}, str(n)) for n in range(calls)])

    return Agent(FunctionModel(answer), tools=[trivial])


NODE, AGENT = tool_node(), agent()


async def langgraph(calls: int) -> None:
    asked = [{"name": "trivial", "args": {"left": 1, "right": n}, "id": str(n)} for n in range(calls)]
    state = await NODE.ainvoke({"messages": [AIMessage("", tool_calls=asked)]})
    assert len(state["messages"]) == calls + 1
    assert state["messages"][-1].content == str(calls)


async def pydantic_ai(calls: int) -> None:
    run = await AGENT.run(str(calls))
    assert [part.content for part in run.all_messages()[2].parts] == [str(1 + n) for n in range(calls)]


PEERS: dict[str, Callable[[int], Awaitable[None]]] = {
    "bare loop": bare,
    "handrail": ours,
    "langgraph": langgraph,
    "pydantic-ai": pydantic_ai,
}


async def measure() -> dict[str, dict[str, float]]:
    """Microseconds per call, by calls per turn and by framework."""
    figures: dict[str, dict[str, float]] = {}
    for calls in (1, 10):
        turns = CALLS_PER_ROUND // calls
        rounds = [
            {name: await cost(partial(run, calls), calls, turns) for name, run in PEERS.items()} for _ in range(ROUNDS)
        ]
        figures[f"{calls} per turn"] = {name: quiet([each[name] for each in rounds]) for name in PEERS}
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
            print(f"{row:<12} {name:<12} {value:9.1f} us   {value / costs['handrail']:6.1f} x handrail")


if __name__ == "__main__":
    main()
