"""ScheduleWakeup: come back to this conversation after a while."""

from handrail.builtin.schedules.answers import SCHEDULES, schedules_of
from handrail.builtin.services import ToolServices
from handrail.errors import ScheduleError, ToolError
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool


class ScheduleWakeupInput(PlainInput):
    delaySeconds: float = Field(  # noqa: N815  # the name that models know
        gt=0, description="In how many seconds; less than 60 counts as 60, more than 3600 as 3600."
    )
    reason: str = Field(max_length=500, description="Why you come back, in one line for the user.")
    prompt: str = Field(min_length=1, description="What you are to do then; you see it as a message.")


class ScheduleWakeup(Tool[ScheduleWakeupInput]):
    name = "ScheduleWakeup"
    search_hint = "come back later resume after delay timer"
    input_model = ScheduleWakeupInput
    subject = "prompt"
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: ScheduleWakeupInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=SCHEDULES)

    def summary(self, args: ScheduleWakeupInput) -> str:
        return f"ScheduleWakeup({args.delaySeconds:g} s: {args.reason})"

    async def call(self, args: ScheduleWakeupInput, ctx: ToolContext) -> Output:
        try:
            made = await schedules_of(self._services).wake(args.delaySeconds, args.prompt)
        except ScheduleError as error:
            raise ToolError(str(error)) from error
        return Output(
            text=f"You will be woken at {made.shown_next} (id {made.id}). End your turn; nothing has to wait for it.",
            data={"id": made.id, "scheduledFor": made.next},
            card=Card(title="Wake-up", detail=made.shown_next, body=args.reason),
        )
