"""
Who has a say in a call: hooks, and the gate that decides.

The engine knows them as Protocols. The neutral ones here let it run without any rules; the real ones are handed in.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, Protocol

from handrail.conversation.blocks import Json, ToolUse
from handrail.dispatch.flags import declaration, flag, short
from handrail.records import record
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import (
    NO_OPINION,
    NO_RULES,
    Check,
    Decision,
    Opinion,
    PermissionSnapshot,
    Strength,
    Verdict,
    fold,
)
from handrail.tools.pool import AnyTool


class Request:
    """One call that wants to run: the tool, its checked input, and what the tool declares about that input."""

    __slots__ = ("access", "args", "ctx", "policy", "read_only", "tool", "use")

    def __init__(
        self, use: ToolUse, tool: AnyTool, args: Any, ctx: ToolContext, *, read_only: bool, access: Access
    ) -> None:
        self.policy: PermissionSnapshot | None = None
        """What the gate decided on; None = it has no policy."""
        self.use = use
        self.tool = tool
        self.args = args
        self.ctx = ctx
        self.read_only = read_only
        self.access = access

    @classmethod
    def of(cls, use: ToolUse, tool: AnyTool, args: Any, ctx: ToolContext) -> "Request":
        """The request, with what the tool says about this input."""
        access = declaration(tool, args, ctx.run)
        return cls(use, tool, args, ctx, read_only=flag(tool.is_read_only, args), access=access)

    @property
    def summary(self) -> str:
        """The call in short."""
        return short(self.tool, self.args)


@record
class HookAnswer:
    """
    What hooks say about a call: before it an opinion and a changed input, after it a changed output.

    `context` is what the model should know. `stop` is why the run shall end here (None = it may go on): before a call
    that also means that the call does not run. `defers`: its opinion asks, but it would rather have the call put off.
    `asked`: there was somebody who could have had an opinion.
    """

    opinion: Opinion | None = None
    updated_input: Json | None = None
    context: tuple[str, ...] = ()
    updated_output: Output | None = None
    stop: str | None = None
    defers: bool = False
    asked: bool = False


NO_ANSWER = HookAnswer()


class Hooks(Protocol):
    """Asked before and after a call."""

    async def before(self, request: Request) -> HookAnswer: ...

    async def after(self, request: Request, output: Output | None, error: str, seconds: float) -> HookAnswer:
        """Asked when the call has run for `seconds`. `error` is empty when it went well."""
        ...


@record
class Evidence:
    """What is known about a call when the gate decides: the earlier layers have all spoken."""

    hook: Opinion | None = None
    doubt: str = ""
    """Semantic validation was not sure; this is why."""
    check: Check = NO_OPINION


NOTHING_SAID = Evidence()


class Gate(Protocol):
    """
    Decides, and asks whoever has to be asked. Only an allow lets the call run.

    An input that the decision changes is validated again, but not decided on again: that is up to the gate.
    """

    async def decide(self, request: Request, evidence: Evidence) -> Decision: ...

    def snapshot(self, run: RunContext) -> PermissionSnapshot:
        """The policy in force for the calls of a run."""
        ...

    def adopt(self, change: ContextChange, run: RunContext, *, consented: bool) -> str:
        """
        Change the policy as a call wants it for the calls after it; why that cannot be, or nothing.

        `consented`: a person agreed to the call, so that it may also widen what is permitted.
        """
        ...


class WithoutPolicy:
    """The part of a gate that has no rules and no mode."""

    def snapshot(self, _run: RunContext) -> PermissionSnapshot:
        """The empty snapshot."""
        return NO_RULES

    def adopt(self, change: ContextChange, _run: RunContext, *, consented: bool) -> str:
        """The current folder may change; there is no mode and no working folder that could."""
        changes = change.mode or change.leave_plan or change.add_directories
        return "this run has no permission mode and no working folders" if changes else ""


class Approver(Protocol):
    """Somebody who can be asked."""

    async def approve(self, request: Request, decision: Decision) -> Decision: ...


@record
class CarefulGate(WithoutPolicy):
    """
    The gate without rules: what only reads may pass, the rest is asked for, and with nobody to ask it is refused.

    With `trusting`, whatever nobody objects to may pass.
    """

    approver: Approver | None = None
    trusting: bool = False

    async def decide(self, request: Request, evidence: Evidence) -> Decision:
        version = request.ctx.permissions.version
        if (
            evidence is NOTHING_SAID
            and not request.tool.requires_user_interaction
            and (request.read_only or self.trusting)
        ):
            return _passed(version, trusting=self.trusting)  # the same answer for most calls of a run
        decision = fold(tuple(self._opinions(request, evidence)), version)
        if decision.verdict is not Verdict.ASK:
            return decision
        if self.approver:
            return await self.approver.approve(request, decision)
        reason = f"{decision.reason}, and nobody is here to be asked"
        nobody = Opinion(Strength.NOBODY, Verdict.DENY, "person", reason)
        return Decision(Verdict.DENY, reason, (*decision.opinions, nobody), decision.version)

    def _opinions(self, request: Request, evidence: Evidence) -> list[Opinion]:
        opinions = [evidence.hook] if evidence.hook else []
        if request.tool.requires_user_interaction:
            opinions.append(Opinion(Strength.ASK, Verdict.ASK, "tool", "it needs a person's answer"))
        if evidence.doubt:
            opinions.append(Opinion(Strength.TOOL_ASK, Verdict.ASK, "tool", evidence.doubt))
        if evidence.check.verdict:
            opinions.append(tool_opinion(evidence.check.verdict, evidence.check.reason))
        if self.trusting:
            opinions.append(TRUSTED)
        elif request.read_only:
            opinions.append(READ_ONLY)
        return opinions


TRUSTED = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "nobody objects")
READ_ONLY = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "it only reads")


@lru_cache(maxsize=2)
def _passed(version: int, *, trusting: bool) -> Decision:
    return fold((TRUSTED if trusting else READ_ONLY,), version)


TOOL_STRENGTH = {
    Verdict.ALLOW: Strength.MODE,
    Verdict.ASK: Strength.TOOL_ASK,
    Verdict.DENY: Strength.DENY,
}


def tool_opinion(verdict: Verdict, reason: str) -> Opinion:
    """A tool's own check as an opinion: its no counts like any no, its yes only like a mode's."""
    return Opinion(TOOL_STRENGTH[verdict], verdict, "tool", reason)


class Rails:
    """The gate that decides and the hooks around calls (None = there are none, at no cost)."""

    def __init__(self, gate: Gate | Callable[[], Gate] = CarefulGate(), hooks: Hooks | None = None) -> None:  # noqa: B008  # frozen
        """A function in the place of a gate opens it when the first call needs it."""
        self._gate = gate
        self.hooks = hooks

    @cached_property
    def gate(self) -> Gate:
        """Decides about calls."""
        return self._gate() if callable(self._gate) else self._gate

    def snapshot(self, run: RunContext) -> PermissionSnapshot:
        """The policy in force for the calls of a run."""
        return self.gate.snapshot(run)
