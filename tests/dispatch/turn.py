"""What the sentences about the executor have in common."""

import asyncio
from pathlib import Path
from typing import Any

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.dispatch.results import ResultStore
from handrail.dispatch.schedule import Scheduling
from handrail.testing import GatedTool
from handrail.tools.access import Access
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome
from handrail.tools.pool import AnyTool, Ingredients, assemble

TRUSTING = Rails(CarefulGate(trusting=True))
ALL = Scheduling(early_start="all")


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


def gated_writer(name: str = "Writer", **members: Any) -> GatedTool:
    return GatedTool(name, shared=False, **members)


class FileTool(GatedTool):
    """Touches the files that its input names."""

    def access(self, args: Any, run: RunContext) -> Access:
        given = args.model_dump()
        return Access.of(reads=given.get("reads", ()), writes=given.get("writes", ()))

    def is_read_only(self, args: Any) -> bool:
        return not args.model_dump().get("writes")


def shell(**members: Any) -> GatedTool:
    return GatedTool("Shell", shared=False, error_cancels_siblings=True, **members)
