"""
What the engine costs, beside the bare event loop in the same run.

    python benchmarks/engine_bench.py [--json]

Times are CPU time of this process where the machine's load must not count, and wall time where waiting is the point.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import BaseModel

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.results import ResultStore
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.pool import Ingredients, Pool, assemble
from handrail.tools.tool import PromptView, Tool

REPEATS = 7


class AddInput(BaseModel):
    left: int
    right: int


class Trivial(Tool[AddInput]):
    """Does as little as a tool can."""

    name = "Trivial"
    input_model = AddInput

    def prompt(self, view: PromptView) -> str:
        return "Adds."

    def is_read_only(self, args: AddInput) -> bool:
        return True

    def is_concurrency_safe(self, args: AddInput) -> bool:
        return True

    async def call(self, args: AddInput, ctx: ToolContext) -> Output:
        return Output(text=str(args.left + args.right))


class Sleeps(Trivial):
    name = "Sleeps"

    async def call(self, args: AddInput, ctx: ToolContext) -> Output:
        await asyncio.sleep(0.2)
        return Output(text="slept")


class WritesOwnFile(Trivial):
    name = "WritesOwnFile"

    def is_read_only(self, args: AddInput) -> bool:
        return False

    async def check_permission(self, args: AddInput, ctx: ToolContext) -> "Check":
        return ALLOWED

    def access(self, args: AddInput, run: RunContext) -> Access:
        return Access.of(writes=[f"/work/{args.left % 100}"])


class Stamped(Trivial):
    """Notes when it began."""

    name = "Stamped"

    def __init__(self) -> None:
        self.began = 0.0

    async def call(self, args: AddInput, ctx: ToolContext) -> Output:
        self.began = time.perf_counter()
        return Output()


from handrail.tools.permission import Check, Verdict  # noqa: E402

ALLOWED = Check(Verdict.ALLOW, "a benchmark")
