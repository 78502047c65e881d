"""Agent: hand a task to a sub-agent."""

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.delegation import AgentTask, Delegate
from handrail.tools.output import Output
from handrail.tools.permission import Check, Refuse, Verdict
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool
from handrail.tools.wording import did_you_mean

DEFAULT_KIND = "general-purpose"


class AgentInput(PlainInput):
    description: str = Field(description="The task in three to five words.")
    prompt: str = Field(description="The whole task.")
    subagent_type: str = Field(default=DEFAULT_KIND, description="Which kind of sub-agent.")
    model: str = Field(default="", description="Another model than yours.")


class AgentTool(Tool[AgentInput]):
    name = "Agent"
    aliases = ("Task",)
    search_hint = "delegate subtask parallel helper worker"
    input_model = AgentInput
    subject = "subagent_type"
    always_load = True
    interrupt = "cancel"

    def __init__(self, services: ToolServices) -> None:
        self._delegate: Delegate | None = services.delegate

    def summary(self, args: AgentInput) -> str:
        return f"Agent({args.subagent_type}: {args.description})"

    def is_concurrency_safe(self, args: AgentInput) -> bool:
        return self.is_read_only(args)

    def is_read_only(self, args: AgentInput) -> bool:
        return self._delegate is not None and self._delegate.agent_types().get(args.subagent_type, False)

    def access(self, args: AgentInput, run: RunContext) -> Access:
        """Each call of the sub-agent is judged by itself."""
        return Access.bookkeeping(width="shared" if self.is_read_only(args) else "exclusive")

    async def validate(self, args: AgentInput, ctx: ToolContext) -> Refuse | None:
        if self._delegate is None:
            return Refuse("There are no sub-agents in this run. Do the task yourself.")
        types = self._delegate.agent_types()
        if args.subagent_type in types:
            return None
        hint = did_you_mean(args.subagent_type, types)
        return Refuse(f"There is no sub-agent {args.subagent_type!r}.{hint} There are: {', '.join(sorted(types))}.")

    async def check_permission(self, args: AgentInput, ctx: ToolContext) -> Check:
        return Check(Verdict.ALLOW, "each call of the sub-agent is judged by itself")

    async def call(self, args: AgentInput, ctx: ToolContext) -> Output:
        assert self._delegate is not None
        task = AgentTask(args.subagent_type, args.prompt, args.description, args.model)
        report = await self._delegate.work(task, ctx)
        if report.problem and not report.text:
            text = f"The sub-agent {args.subagent_type} did not finish: {report.problem}"
            return Output(text=text, is_error=True)
        took = f"{report.calls} calls, {report.tokens:,} tokens, {report.seconds:.1f} s"
        ending = f" It stopped early: {report.problem}" if report.problem else ""
        return Output(
            blocks=(Text(report.text), Text(f"[sub-agent {report.agent_id}: {took}.{ending}]")),
            data={
                "status": "completed",
                "agentId": report.agent_id,
                "content": [{"type": "text", "text": report.text}],
                "totalToolUseCount": report.calls,
                "totalDurationMs": round(report.seconds * 1000),
                "totalTokens": report.tokens,
            },
            card=Card(title=f"{args.subagent_type}: {args.description}", detail=took, body=report.text),
        )
