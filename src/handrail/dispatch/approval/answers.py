"""
Asks about a call that the policy alone does not decide, and makes a decision of the answer.

Loaded with the first question.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeAlias

from handrail.conversation.blocks import Json, Text, ToolUse
from handrail.dispatch.approval.approvers import (
    ANSWERERS,
    AUTOMATIC,
    NO_ANSWERER,
    AnswerOrDecision,
    Approvers,
    PendingApproval,
    needs_person,
)
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.approval.once import ResolveOnce
from handrail.dispatch.approval.question import make_question
from handrail.dispatch.approval.remedy import find_remedy
from handrail.dispatch.gate import refuse_unasked
from handrail.permissions.case import Case
from handrail.permissions.facts import Evidence
from handrail.records import record
from handrail.tools.abort import AbortReason
from handrail.tools.context import AgentIdentity
from handrail.tools.flags import parse
from handrail.tools.permission import Allow, Decision, Deny, Opinion, Strength, Update, Verdict
from handrail.tools.request import CallRequest

DecideByPolicy: TypeAlias = Callable[[CallRequest, Evidence], Awaitable[tuple[Case, Decision]]]

MAIN = AgentIdentity()
TO_SUBAGENT = Text(
    "You are a sub-agent: go on with what else you can do, and tell the agent that started you what was refused."
)


@record
class Resolution:
    """The result of a question: the decision, who made it, and the permission updates that came with it."""

    decision: Decision
    by: str
    updates: tuple[Update, ...] = ()
    problems: tuple[str, ...] = ()


class Answers:
    """The questions of a session and what came of them. A deny of the policy wins over every answer."""

    def __init__(
        self, policy: LivePolicy, approvers: Approvers, decide: DecideByPolicy, *, finds_remedies: bool
    ) -> None:
        self._policy = policy
        self._approvers = approvers
        self._decide = decide
        self._finds_remedies = finds_remedies
        self._numbers = count(1)

    async def settle(self, request: CallRequest, evidence: Evidence, case: Case, decision: Decision) -> Resolution:
        question = make_question(next(self._numbers), request, case, decision, self._policy.persist)
        once: ResolveOnce[AnswerOrDecision] = ResolveOnce()
        request.ctx.abort.listen(partial(_resolve_aborted, once))
        if not once.is_resolved:
            rules = partial(self._changed_rules, request, evidence)
            await self._approvers.ask(PendingApproval(request, evidence, case, decision, question, once, rules))
        if not once.is_resolved:
            refused = await self.with_remedy(request, evidence, case, refuse_unasked(decision, NO_ANSWERER))
            return Resolution(refused, NO_ANSWERER)
        match once.answer:
            case Decision() as said:
                return Resolution(said, once.winner)
            case Deny() as no:
                refused = refusal(decision, no, once.winner, request.ctx.agent)
                return Resolution(refused, answerer(once.winner, no.by))
            case yes:
                return await self._allow(request, evidence, decision, yes, once.winner)

    async def _allow(
        self, request: CallRequest, evidence: Evidence, decision: Decision, answer: Allow, who: str
    ) -> Resolution:
        """Allow the call if the policy of this moment does not deny it."""
        changed = None if answer.updated_input == request.use.input else answer.updated_input
        again = await self._decide_again(request, evidence, changed)
        if again.verdict is Verdict.DENY:
            opinions = (*decision.opinions, *(each for each in again.opinions if each not in decision.opinions))
            return Resolution(
                replace(again, opinions=opinions, reason=f"{again.reason}, whatever was answered"), "rules"
            )
        if changed is not None and who in AUTOMATIC and needs_person(request, again, answer):
            return Resolution(refuse_unasked(again, NO_ANSWERER), NO_ANSWERER)
        problems = await self._policy.change(answer.updated_permissions, request.ctx.agent.path)
        said = self._consent(request, who, answer.by)
        allowed = replace(
            decision,
            verdict=Verdict.ALLOW,
            reason=said.reason,
            opinions=(*decision.opinions, said),
            version=again.version,
            updated_input=changed,
            places=decision.places if changed is None else again.places,
            left_out=again.left_out,
        )
        return Resolution(allowed, answerer(who, answer.by), answer.updated_permissions, problems)

    def _consent(self, request: CallRequest, who: str, name: str) -> Opinion:
        if who != "classifier":
            return Opinion(Strength.PERSON, Verdict.ALLOW, who, f"{name or ANSWERERS.get(who, who)} agreed")
        reason, name = self._approvers.classification_of(request)
        return Opinion(Strength.CLASSIFIER, Verdict.ALLOW, who, reason, name)

    async def _decide_again(self, request: CallRequest, evidence: Evidence, changed: Json | None) -> Decision:
        if changed is None:
            return (await self._decide(request, evidence))[1]
        use, tool = ToolUse(request.use.id, request.use.name, changed), request.tool
        args, problem = parse(tool, changed)
        if problem is not None:
            opinion = Opinion(Strength.DENY, Verdict.DENY, "input", f"the changed input does not fit: {problem}")
            return Decision(Verdict.DENY, opinion.reason, (opinion,), self._policy().version)
        ctx = request.ctx.replace(use=use)
        # Hooks spoke about another input, and the answer that changed the input settles the doubts of validation.
        said = Evidence(check=await tool.check_permission(args, ctx))
        other = CallRequest.of(use, tool, args, ctx)
        decision = (await self._decide(other, said))[1]
        request.policy = other.policy
        return decision

    async def with_remedy(self, request: CallRequest, evidence: Evidence, case: Case, decision: Decision) -> Decision:
        """The refusal with what would have allowed the call."""
        if not self._finds_remedies:
            return decision
        return replace(decision, remedy=await find_remedy(request, evidence, case))

    async def _changed_rules(self, request: CallRequest, evidence: Evidence) -> Decision:
        """Wait until a policy change decides the call."""
        changed = asyncio.Event()
        forget = self._policy.listen(changed.set)
        try:
            while True:
                await changed.wait()
                changed.clear()
                _, decision = await self._decide(request, evidence)
                if decision.verdict is not Verdict.ASK:
                    return decision
        finally:
            forget()


def answerer(who: str, name: str) -> str:
    """Who answered, as the audit log names them: a person by name if several could, whatever else was asked too."""
    return f"person {name}" if name else who


def refusal(decision: Decision, answer: Deny, who: str, agent: AgentIdentity) -> Decision:
    """A deny answer as a decision: the model gets the feedback, and a sub-agent learns that only it is meant."""
    reason = answer.message.strip().rstrip(".") or f"{answer.by or ANSWERERS.get(who, who)} said no"
    return replace(
        decision,
        verdict=Verdict.DENY,
        reason=reason,
        opinions=(*decision.opinions, Opinion(Strength.PERSON, Verdict.DENY, who, reason)),
        feedback=answer.feedback if agent.id == MAIN.id else (*answer.feedback, TO_SUBAGENT),
        interrupt=answer.interrupt,
    )


def _resolve_aborted(once: ResolveOnce[AnswerOrDecision], reason: AbortReason) -> None:
    once.resolve("abort", Deny(f"the call was stopped before anybody answered ({reason.value})"))
