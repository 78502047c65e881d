"""SendMessage: write to another agent."""

from handrail.builtin.services import ToolServices
from handrail.builtin.teams.session_teams import MAIL, NO_AGENTS, agent_line, teams_of
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.delegation import AgentMessage, Delivery
from handrail.tools.output import Output
from handrail.tools.permission import Check, Refuse, Verdict
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool

MAX_TEXT = 100_000


class SendMessageInput(PlainInput):
    to: str = Field(min_length=1, max_length=200, description="The name or id of an agent; main = the lead; * = all.")
    message: str = Field(min_length=1, max_length=MAX_TEXT, description="What it has to know.")
    summary: str = Field(default="", max_length=200, description="The message in a few words, for people.")
    notify_when_idle: bool = Field(default=False, description="You are told when it is idle again.")


class SendMessage(Tool[SendMessageInput]):
    name = "SendMessage"
    search_hint = "talk tell agent teammate wake reply broadcast"
    input_model = SendMessageInput
    subject = "to"
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def summary(self, args: SendMessageInput) -> str:
        return f"SendMessage({args.to}: {args.summary or args.message[:60]})"

    def access(self, args: SendMessageInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=MAIL)

    async def validate(self, args: SendMessageInput, ctx: ToolContext) -> Refuse | None:
        return Refuse(NO_AGENTS) if self._services.delegate is None else None

    async def check_permission(self, args: SendMessageInput, ctx: ToolContext) -> Check:
        return Check(Verdict.ALLOW, "each call of the agent that reads it is judged by itself")

    async def call(self, args: SendMessageInput, ctx: ToolContext) -> Output:
        message = AgentMessage(args.to, args.message, args.summary, notify_when_idle=args.notify_when_idle)
        done = await teams_of(self._services).send(message, ctx)
        text = done.problem or _delivery_text(done)
        return Output(
            text=text,
            data={"success": not done.problem, "message": text, "recipients": [each.id for each in done.receivers]},
            card=Card(
                title=f"To {args.to}",
                detail=done.problem or args.summary,
                body=args.message,
                tone="warning" if done.problem else "plain",
            ),
        )


def _delivery_text(done: Delivery) -> str:
    lines = [
        f"Sent to {agent_line(each)}" + (", which goes on for it." if each.id in done.woken else ".")
        for each in done.receivers
    ]
    return "\n".join([*lines, *(["Sent to the lead."] if done.to_lead else [])])
