"""
The hooks and the gate that decide on a call, as Protocols, and a gate that needs no rules.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Protocol, runtime_checkable

from handrail.conversation.blocks import Json
from handrail.dispatch.held_places import HeldPlaces
from handrail.dispatch.observer import CallObserver
from handrail.permissions.facts import NOTHING_SAID, Evidence
from handrail.records import record
from handrail.tools.context import RunContext
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import (
    NO_RULES,
    Decision,
    Opinion,
    PermissionSnapshot,
    Strength,
    Verdict,
    fold,
)
from handrail.tools.request import CallRequest


@record
class HookAnswer:
    """
    What hooks answer about a call: before it an opinion and a changed input, after it a changed output.

    `context` is text for the model. `stop` is why the run ends here (None = it goes on); before a call it also means
    that the call does not run. `defers`: the hook would rather put the call off than ask. `asked`: a hook was asked.
    """

    opinion: Opinion | None = None
    updated_input: Json | None = None
    context: tuple[str, ...] = ()
    updated_output: Output | None = None
    stop: str | None = None
    defers: bool = False
    asked: bool = False


NO_ANSWER = HookAnswer()

UNDECIDED = Opinion(Strength.ASK, Verdict.ASK, "hooks", "a hook had put it off, and no hook has a say in it any more")


def ask_instead(hook: HookAnswer) -> HookAnswer:
    """Ask about a call that cannot be put off, and say why."""
    assert hook.opinion is not None
    reason = f"{hook.opinion.reason}, which only works for the single call of an answer in a run without a terminal"
    return replace(hook, opinion=replace(hook.opinion, reason=reason))


class ToolHooks(Protocol):
    """Asked before and after a call."""

    async def before(self, request: CallRequest) -> HookAnswer: ...

    async def after(self, request: CallRequest, output: Output | None, error: str, seconds: float) -> HookAnswer:
        """Asked when the call has run for `seconds`. `error` is empty when it went well."""
        ...


class Gate(Protocol):
    """
    Decides on calls, and asks the user or a handler if needed. Only an allow lets the call run.

    An input that the decision changes is validated again, but the pipeline does not ask the gate again.
    """

    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision: ...

    def snapshot(self, run: RunContext) -> PermissionSnapshot:
        """The policy in force for the calls of a run."""
        ...

    def adopt(self, change: ContextChange, run: RunContext, *, consented: bool) -> str:
        """
        Change the policy for later calls as a call asks; returns why that is impossible, or an empty text.

        `consented`: the user agreed to the call, so it may also widen permissions.
        """
        ...


class WithoutPolicy:
    """The part of a gate that has no rules and no mode."""

    def snapshot(self, _run: RunContext) -> PermissionSnapshot:
        """The empty snapshot."""
        return NO_RULES

    def adopt(self, change: ContextChange, _run: RunContext, *, consented: bool) -> str:
        """Only the current folder can change: there is no mode and no working folder."""
        changes = change.mode or change.leave_plan or change.add_directories
        return "this run has no permission mode and no working folders" if changes else ""


class Approver(Protocol):
    """Decides on calls that the gate would ask about."""

    async def approve(self, request: CallRequest, decision: Decision) -> Decision: ...


@record
class CarefulGate(WithoutPolicy):
    """
    The gate without rules: read-only calls pass, the approver is asked about others, and without one they are refused.

    With `trusting`, all calls pass that no hook or tool objects to.
    """

    approver: Approver | None = None
    trusting: bool = False

    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
        version = request.ctx.permissions.version
        if (
            evidence is NOTHING_SAID
            and not request.tool.requires_user_interaction
            and (request.read_only or self.trusting)
        ):
            return _pass(version, trusting=self.trusting)  # the common case, cached
        decision = fold(tuple(self._opinions(request, evidence)), version)
        if decision.verdict is not Verdict.ASK:
            return decision
        if self.approver:
            await request.before_question()
            return await self.approver.approve(request, decision)
        return refuse_unasked(decision, "person")

    def _opinions(self, request: CallRequest, evidence: Evidence) -> list[Opinion]:
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


def refuse_unasked(decision: Decision, layer: str) -> Decision:
    """Turn a question that can be put to no one into a refusal."""
    reason = f"{decision.reason}, and there is no one to ask"
    opinion = Opinion(Strength.UNANSWERED, Verdict.DENY, layer, reason)
    return replace(decision, verdict=Verdict.DENY, reason=reason, opinions=(*decision.opinions, opinion))


TRUSTED = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "nothing objects to it")
READ_ONLY = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "it only reads")


@lru_cache(maxsize=2)
def _pass(version: int, *, trusting: bool) -> Decision:
    return fold((TRUSTED if trusting else READ_ONLY,), version)


TOOL_STRENGTH = {
    Verdict.ALLOW: Strength.MODE,
    Verdict.ASK: Strength.TOOL_ASK,
    Verdict.DENY: Strength.DENY,
}


def tool_opinion(verdict: Verdict, reason: str) -> Opinion:
    """A tool's own check as an opinion: its deny is as strong as any, its allow only as strong as a mode's."""
    return Opinion(TOOL_STRENGTH[verdict], verdict, "tool", reason)


@runtime_checkable
class RecordingGate(Protocol):
    """A gate that keeps records of what it decides."""

    def close(self) -> None: ...


class Rails:
    """The gate that decides, the hooks around calls and what watches them (None = there is none, at no cost)."""

    def __init__(
        self,
        gate: Gate | Callable[[], Gate] = CarefulGate(),  # noqa: B008  # frozen
        hooks: ToolHooks | None = None,
        observer: CallObserver | None = None,
        places: HeldPlaces | None = None,
    ) -> None:
        """
        A function in the place of a gate opens it when the first call needs it.

        `places` are shared with calls under other rails; without them, only with those under these.
        """
        self._gate = gate
        self.hooks = hooks
        self.observer = observer
        self.places = places or HeldPlaces()
        """What the running calls of all agents hold."""

    @cached_property
    def gate(self) -> Gate:
        """Decides about calls."""
        return self._gate() if callable(self._gate) else self._gate

    def snapshot(self, run: RunContext) -> PermissionSnapshot:
        """The policy in force for the calls of a run."""
        return self.gate.snapshot(run)

    def close(self) -> None:
        """Let the gate finish its records, if it was opened and keeps any."""
        gate = self.__dict__.get("gate")
        if isinstance(gate, RecordingGate):
            gate.close()
