"""CronDelete: remove a schedule."""

from handrail.builtin.schedules.answers import SCHEDULES, schedules_of
from handrail.builtin.services import ToolServices
from handrail.errors import ScheduleError, ToolError
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import NO_OPINION, Check, Verdict
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool


class CronDeleteInput(PlainInput):
    id: str = Field(min_length=1, max_length=64, description="The id that CronCreate gave, or CronList shows.")


class CronDelete(Tool[CronDeleteInput]):
    name = "CronDelete"
    search_hint = "remove cancel stop schedule reminder recurring"
    input_model = CronDeleteInput
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: CronDeleteInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=SCHEDULES)

    async def check_permission(self, args: CronDeleteInput, ctx: ToolContext) -> Check:
        try:
            found = [each for each in schedules_of(self._services).all() if each.id == args.id]
        except (ScheduleError, ToolError):
            return NO_OPINION  # the call says what is wrong
        if not found or not found[0].durable:
            return NO_OPINION
        return Check(Verdict.ASK, f"it removes a schedule that outlives this session: {found[0].words}")

    async def call(self, args: CronDeleteInput, ctx: ToolContext) -> Output:
        try:
            gone = await schedules_of(self._services).remove(args.id)
        except ScheduleError as error:
            raise ToolError(str(error)) from error
        text = f"Schedule {gone.id} ({gone.words}) was removed."
        return Output(text=text, data={"id": gone.id}, card=Card(title=text, body=gone.prompt))
