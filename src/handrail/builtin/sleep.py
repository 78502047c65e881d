"""Sleep: wait for a while; the user can end it at any moment."""

import asyncio

from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import Field, PlainInput

MAX_SECONDS = 3600.0


class SleepInput(PlainInput):
    seconds: float = Field(gt=0, le=MAX_SECONDS, description="How long to wait.")


class Sleep(ReadOnlyTool[SleepInput]):
    name = "Sleep"
    search_hint = "wait pause delay time seconds"
    input_model = SleepInput
    interrupt = "cancel"
    should_defer = True

    def access(self, args: SleepInput, run: RunContext) -> Access:
        return Access.of()

    def summary(self, args: SleepInput) -> str:
        return f"Sleep({args.seconds:g} s)"

    async def call(self, args: SleepInput, ctx: ToolContext) -> Output:
        ctx.progress(Progress(f"waiting {args.seconds:g} s"))
        await asyncio.sleep(args.seconds)
        return Output(text=f"Waited {args.seconds:g} seconds.", card=Card(title="Sleep", detail=f"{args.seconds:g} s"))
