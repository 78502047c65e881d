"""CronList: the schedules of this session and its folder."""

from handrail.builtin.schedules.answers import SCHEDULES, line_of, schedules_of
from handrail.builtin.services import ToolServices
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.errors import ScheduleError, ToolError
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import PlainInput


class CronListInput(PlainInput):
    """It takes nothing."""


class CronList(ReadOnlyTool[CronListInput]):
    name = "CronList"
    search_hint = "schedule show all reminders recurring next time"
    input_model = CronListInput
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: CronListInput, run: RunContext) -> Access:
        return Access.bookkeeping(reads=SCHEDULES)

    async def call(self, args: CronListInput, ctx: ToolContext) -> Output:
        try:
            found = schedules_of(self._services).all()
        except ScheduleError as error:
            raise ToolError(str(error)) from error
        lines = "\n".join(map(line_of, found)) or "There are no schedules."
        jobs = [
            {
                "id": each.id,
                "cron": each.cron,
                "humanSchedule": each.words,
                "prompt": each.prompt,
                "recurring": each.recurring,
                "durable": each.durable,
            }
            for each in found
        ]
        return Output(text=lines, data={"jobs": jobs}, card=Card(title=f"{len(found)} schedules", body=lines))
