"""ExitPlanMode: show the plan to the person; their yes ends plan mode."""

import asyncio
from pathlib import Path

from pydantic import ConfigDict
from pydantic.json_schema import SkipJsonSchema

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Json
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import Check, Refuse
from handrail.tools.schema import Input
from handrail.tools.tool import Tool

MAX_PLAN = 200_000


class ExitPlanModeInput(Input):
    """The plan is read from its file; whatever the model says here is left aside."""

    model_config = ConfigDict(extra="ignore")

    plan: SkipJsonSchema[str] = ""
    planFilePath: SkipJsonSchema[str] = ""  # noqa: N815 - the name that programs which answer know


class ExitPlanMode(Tool[ExitPlanModeInput]):
    name = "ExitPlanMode"
    search_hint = "present for approval, leave, finish thinking"
    input_model = ExitPlanModeInput
    requires_user_interaction = True
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: ExitPlanModeInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes="permission mode", width="exclusive")

    def is_read_only(self, args: ExitPlanModeInput) -> bool:
        return False

    def summary(self, args: ExitPlanModeInput) -> str:
        return "ExitPlanMode"

    def document(self, args: ExitPlanModeInput) -> Card:
        if not args.plan:
            return Card("No plan", body="The model has not written a plan to its file.")
        return Card("The plan", args.planFilePath, args.plan, "markdown")

    async def validate(self, args: ExitPlanModeInput, ctx: ToolContext) -> Refuse | None:
        if ctx.permissions.mode == "plan":
            return None
        return Refuse("Plan mode is not on, so there is nothing to leave. Do the work, or call EnterPlanMode first.")

    async def check_permission(self, args: ExitPlanModeInput, ctx: ToolContext) -> Check:
        return Check(updated_input=await asyncio.to_thread(read_plan, self._services.plan_file), mode="acceptEdits")

    async def call(self, args: ExitPlanModeInput, ctx: ToolContext) -> Output:
        text = "The user approved the plan, and plan mode is over. Carry it out now."
        return Output(
            text=f"{text}\n\nThe approved plan ({args.planFilePath}):\n\n{args.plan}" if args.plan else text,
            data={"plan": args.plan, "isAgent": not ctx.agent.is_main, "filePath": args.planFilePath},
            card=Card("Plan approved", args.planFilePath, args.plan, "markdown", tone="good"),
            context_change=ContextChange(leave_plan=True),
        )


def read_plan(file: Path) -> Json:
    """The plan as it is asked about; empty if there is none."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            text = opened.read(MAX_PLAN)
    except FileNotFoundError:
        return {}
    return {"plan": text, "planFilePath": str(file)} if text.strip() else {}
