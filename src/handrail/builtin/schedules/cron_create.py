"""CronCreate: schedule a prompt."""

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


class CronCreateInput(PlainInput):
    cron: str = Field(
        max_length=200, description="Minute, hour, day of month, month, day of week, in local time: '0 9 * * 1-5'."
    )
    prompt: str = Field(min_length=1, description="What you are to do then; you see it as a message.")
    recurring: bool = Field(default=True, description="False: only the next time.")
    durable: bool = Field(
        default=False, description="Keep it when this session ends. Only if the user wants that; it is asked about."
    )


class CronCreate(Tool[CronCreateInput]):
    name = "CronCreate"
    search_hint = "schedule remind later every day time recurring prompt"
    input_model = CronCreateInput
    subject = "prompt"
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: CronCreateInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=SCHEDULES)

    def summary(self, args: CronCreateInput) -> str:
        return f"CronCreate({args.cron})"

    async def check_permission(self, args: CronCreateInput, ctx: ToolContext) -> Check:
        if not args.durable:
            return NO_OPINION
        return Check(Verdict.ASK, "it outlives this session: its prompt starts in later ones, also unattended")

    async def call(self, args: CronCreateInput, ctx: ToolContext) -> Output:
        try:
            made = await schedules_of(self._services).create(
                args.cron, args.prompt, recurring=args.recurring, durable=args.durable
            )
        except ScheduleError as error:
            raise ToolError(str(error)) from error
        ends = " It ends by itself after 7 days." if made.recurring else ""
        where = "in any session of this folder" if made.durable else "in this session, as long as it is open"
        return Output(
            text=f"Schedule {made.id}: {made.words}, next {made.shown_next}, {where}.{ends} CronDelete removes it.",
            data={
                "id": made.id,
                "humanSchedule": made.words,
                "recurring": made.recurring,
                "durable": made.durable,
            },
            card=Card(title=f"Schedule {made.id}", detail=made.words, body=args.prompt),
        )
