"""Agent: hand a task to a sub-agent."""

from typing import Literal

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Json, Text
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.delegation import AgentReport, AgentTask, Delegate
from handrail.tools.output import Output
from handrail.tools.permission import Check, Refuse, Verdict
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool

DEFAULT_KIND = "general-purpose"
GROUP = "agents"
"""The calls of sub-agents share the world with each other, because each call inside is scheduled by itself."""


class AgentInput(PlainInput):
    description: str = Field(description="The task in three to five words.")
    prompt: str = Field(description="The whole task.")
    subagent_type: str = Field(default=DEFAULT_KIND, description="Which kind of sub-agent.")
    model: str = Field(default="", description="Another model than yours.")
    effort: Literal["", "minimal", "low", "medium", "high", "xhigh", "max"] = Field(
        default="", description="How hard it thinks."
    )
    run_in_background: bool | None = Field(
        default=None, description="true: go on at once, you are told when it ends. false: wait for its report."
    )
    isolation: Literal["", "worktree"] = Field(
        default="", description="worktree: it works in a git worktree of its own, from your HEAD."
    )
    resume: str = Field(default="", description="The id of a sub-agent that has ended: it goes on with what it knows.")
    name: str = Field(default="", max_length=64, description="What messages may call it.")
    team_name: str = Field(default="", max_length=64, description="The team that it works in; it needs a name then.")


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
        """
        Each call of the sub-agent is judged by itself.

        Sub-agents of an answer run side by side; other calls of the answer run before or after all of them.
        """
        return Access.bookkeeping(width="shared" if self.is_read_only(args) else "exclusive", group=GROUP)

    async def validate(self, args: AgentInput, ctx: ToolContext) -> Refuse | None:
        if self._delegate is None:
            return Refuse("There are no sub-agents in this run. Do the task yourself.")
        problem = self._delegate.refuse(_task(args), ctx.agent)
        return Refuse(problem) if problem else None

    async def check_permission(self, args: AgentInput, ctx: ToolContext) -> Check:
        if ctx.permissions.mode == "plan" and self._delegate is not None and self._delegate.makes_worktree(_task(args)):
            return Check(Verdict.ASK, "it would make a git worktree, and plan mode changes nothing")
        return Check(Verdict.ALLOW, "each call of the sub-agent is judged by itself")

    async def call(self, args: AgentInput, ctx: ToolContext) -> Output:
        assert self._delegate is not None
        report = await self._delegate.work(_task(args), ctx)
        about = {"agentId": report.agent_id, "agentType": report.kind, "prompt": args.prompt, "canContinueAgent": True}
        if report.status == "running":
            return _launch_output(args, report, about)
        if report.problem and not report.text:
            text = f"The sub-agent {report.kind} ({report.agent_id}) did not finish: {report.problem}"
            return Output(text="\n".join((text, *report.notes)), is_error=True)
        took = f"{report.calls} calls, {report.tokens:,} tokens, {report.seconds:.1f} s"
        ending = f" It stopped early: {report.problem}." if report.problem else ""
        foot = "\n".join((f"[agentId: {report.agent_id}; {took}.{ending}]", *report.notes))
        return Output(
            blocks=(Text(report.text), Text(foot)),
            data={
                "status": "completed",
                **about,
                "content": [{"type": "text", "text": report.text}],
                "resolvedModel": report.model,
                "totalToolUseCount": report.calls,
                "totalDurationMs": round(report.seconds * 1000),
                "totalTokens": report.tokens,
                "usage": dict(report.usage),
                "totalCostUsd": report.dollars,
            },
            card=Card(title=f"{report.kind}: {args.description}", detail=took, body=report.text),
        )


def _task(args: AgentInput) -> AgentTask:
    return AgentTask(
        args.subagent_type,
        args.prompt,
        args.description,
        args.model,
        args.effort,
        args.run_in_background,
        args.isolation,
        resume=args.resume,
        name=args.name,
        team=args.team_name,
    )


def _launch_output(args: AgentInput, report: AgentReport, about: Json) -> Output:
    text = (
        f"The sub-agent works in the background. agentId: {report.agent_id}. You are told when it ends, and its report "
        f"comes then; do not wait for it. TaskStop with its id ends it."
    )
    return Output(
        text="\n".join((text, *report.notes)),
        data={
            "isAsync": True,
            "status": "async_launched",
            **about,
            "description": args.description,
            "outputFile": report.output,
            "canReadOutputFile": True,
        },
        card=Card(title=f"{report.kind}: {args.description}", detail=f"in the background as {report.agent_id}"),
    )
