"""EnterPlanMode: from here on only look and plan, until the person approves the plan."""

from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import Refuse
from handrail.tools.plain_input import PlainInput


class EnterPlanModeInput(PlainInput):
    pass


class EnterPlanMode(ReadOnlyTool[EnterPlanModeInput]):
    name = "EnterPlanMode"
    search_hint = "design an approach first, before changing anything"
    input_model = EnterPlanModeInput
    should_defer = True

    def access(self, args: EnterPlanModeInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes="permission mode", width="exclusive")

    def summary(self, args: EnterPlanModeInput) -> str:
        return "EnterPlanMode"

    async def validate(self, args: EnterPlanModeInput, ctx: ToolContext) -> Refuse | None:
        return Refuse("Plan mode is on already. Go on with the plan.") if ctx.permissions.mode == "plan" else None

    async def call(self, args: EnterPlanModeInput, ctx: ToolContext) -> Output:
        return Output(
            text="Plan mode is on. Look around, then write the plan.",
            card=Card(title="Plan mode", detail="on"),
            context_change=ContextChange(mode="plan"),
        )
