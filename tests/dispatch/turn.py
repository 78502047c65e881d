"""What the sentences about the executor have in common."""

import asyncio
from pathlib import Path
from typing import Any

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.dispatch.results import ResultStore
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome
from handrail.tools.pool import AnyTool, Ingredients, assemble

TRUSTING = Rails(CarefulGate(trusting=True))


def executor_for(
    *tools: AnyTool,
    run: RunContext | None = None,
    rails: Rails = TRUSTING,
    store: ResultStore | None = None,
    **options: Any,
) -> ToolExecutor:
    pool = assemble(Ingredients(custom=tools))
    run = run or RunContext(Path("/project"))
    return ToolExecutor(pool, run, store or ResultStore(Path("/nowhere/run")), rails=rails, **options)


def use(call_id: str, name: str = "Gated", **values: Any) -> ToolUse:
    return ToolUse(call_id, name, values)


async def settled() -> None:
    """Until nothing is left to do but wait for the test."""
    await asyncio.sleep(1)


async def rest(executor: ToolExecutor) -> list[Outcome]:
    return [outcome async for outcome in executor.rest()]


async def outcome_of(tool: AnyTool, call: ToolUse | None = None, **options: Any) -> Outcome:
    """How one call of the tool ends, alone in its answer."""
    async with executor_for(tool, **options) as executor:
        executor.add(call or ToolUse("1", tool.name, {}))
        [outcome] = await rest(executor)
    return outcome
