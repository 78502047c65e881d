"""A tool whose calls wait until the test releases them."""

import asyncio
from collections import defaultdict
from typing import Literal

from pydantic import BaseModel, ConfigDict

from handrail.errors import ToolError
from handrail.tools.access import EXCLUSIVE, SHARED, Access
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.tool import PromptView, Tool


class GatedInput(BaseModel):
    """Anything is a valid input."""

    model_config = ConfigDict(extra="allow")


class GatedTool(Tool[GatedInput]):
    """
    Each call waits at the gate of its id; `tool.gate("a").set()` releases it.

    `started` and `ended` list ids in order. A call whose id is in `failing` ends with a ToolError.
    """

    input_model = GatedInput

    def __init__(
        self,
        name: str = "Gated",
        *,
        shared: bool = True,
        read_only: bool | None = None,
        interrupt: Literal["cancel", "block"] | None = None,
        error_cancels_siblings: bool = False,
        requires_user_interaction: bool = False,
        timeout: float | None = None,
    ) -> None:
        self.name = name
        self._shared = shared
        self._read_only = shared if read_only is None else read_only
        self.started: list[str] = []
        self.ended: list[str] = []
        self.failing: set[str] = set()
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.interrupt = interrupt
        self.error_cancels_siblings = error_cancels_siblings
        self.requires_user_interaction = requires_user_interaction
        self.timeout = timeout

    def gate(self, call_id: str) -> asyncio.Event:
        """The gate of one call."""
        return self._gates[call_id]

    def open_all(self, *call_ids: str) -> None:
        """Release these calls."""
        for call_id in call_ids:
            self.gate(call_id).set()

    def prompt(self, view: PromptView) -> str:
        return "Waits until it is let go."

    def is_read_only(self, args: GatedInput) -> bool:
        return self._read_only

    def is_concurrency_safe(self, args: GatedInput) -> bool:
        return self._shared

    def access(self, args: GatedInput, run: RunContext) -> Access:
        return SHARED if self._shared else EXCLUSIVE

    def summary(self, args: GatedInput) -> str:
        return self.name

    async def call(self, args: GatedInput, ctx: ToolContext) -> Output:
        self.started.append(ctx.use.id)
        ctx.progress(Progress(f"{ctx.use.id} waits"))
        await self.gate(ctx.use.id).wait()
        self.ended.append(ctx.use.id)
        if ctx.use.id in self.failing:
            raise ToolError(f"{ctx.use.id} was told to fail.")
        return Output(text=f"{ctx.use.id} done")
