"""
The gate that decides on calls by a policy.

    decide -> allow or deny
           -> ask -> no:  refused, with what the user said about it
                  -> yes: decided again, with the answered input, under the policy of that moment

A deny of the policy wins over every answer. Every decision is recorded, and so is a question without an answer.
"""

import asyncio
import os
import time
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from handrail.conversation.blocks import Json, Text, ToolUse
from handrail.dispatch.approval.approvers import (
    ANSWERERS,
    AUTOMATIC,
    AnswerOrDecision,
    Approvers,
    PendingApproval,
    classifier_text,
    needs_person,
)
from handrail.dispatch.approval.audit import Audit, AuditEntry
from handrail.dispatch.approval.classifier import Classifier
from handrail.dispatch.approval.decide import Conditions, conditions_unchecked, decide_request
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.approval.once import ResolveOnce
from handrail.dispatch.approval.question import Handler, PermissionHooks, make_question
from handrail.dispatch.approval.remedy import find_remedy
from handrail.dispatch.gate import refuse_unasked
from handrail.permissions.case import Case
from handrail.permissions.facts import Evidence
from handrail.permissions.layers import winner
from handrail.permissions.modes import narrow_mode
from handrail.permissions.policy import Policy
from handrail.records import record
from handrail.tools.abort import AbortReason
from handrail.tools.context import AgentIdentity, RunContext
from handrail.tools.flags import parse
from handrail.tools.output import ContextChange
from handrail.tools.permission import Allow, Decision, Deny, Opinion, Strength, Update, Verdict
from handrail.tools.request import CallRequest

MAIN = AgentIdentity()
NO_ANSWERER = "nobody"
MAX_MOVED = 64
"""How many policies for the folders and modes of agents are kept."""
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


class PolicyGate:
    """Decides by the policy in force. Questions go to the approvers; without an answer the call is refused."""

    def __init__(
        self,
        policy: LivePolicy,
        handler: Handler | None = None,
        *,
        hooks: PermissionHooks | None = None,
        classifier: Classifier | None = None,
        conditions: Conditions = conditions_unchecked,
        audit: Audit | None = None,
        finds_remedies: bool = True,
        agent_patience: float | None = None,
        question_patience: float | None = None,
    ) -> None:
        self.policy = policy
        self._approvers = Approvers(handler, hooks, classifier, agent_patience, question_patience)
        self._conditions = conditions
        self._audit = audit
        self._finds_remedies = finds_remedies
        self._numbers = count(1)
        self._moved: dict[tuple[str, object], Policy] = {}
        self._moved_from: Policy | None = None

    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
        started = time.perf_counter()
        case, decision = await self._decide_by_policy(request, evidence)
        decided = time.perf_counter()
        if decision.verdict is not Verdict.ASK:
            if decision.verdict is Verdict.DENY and winner(decision).layer == "mode":
                decision = await self._with_remedy(request, evidence, case, decision)
            decision = name_agent(decision, request.ctx.agent)
            self._record(AuditEntry(request, case, decision, winner(decision).layer, decided - started))
            return decision
        try:
            settled = await self._settle(request, evidence, case, decision)
        except BaseException as error:  # recorded and raised again
            ended = "cancelled" if isinstance(error, asyncio.CancelledError) else f"failed: {error!r}"
            waited = time.perf_counter() - decided
            self._record(AuditEntry(request, case, decision, NO_ANSWERER, decided - started, waited, ended, asked=True))
            raise
        decision = name_agent(settled.decision, request.ctx.agent)
        entry = AuditEntry(
            request,
            case,
            decision,
            settled.by,
            decided - started,
            time.perf_counter() - decided,
            asked=True,
            updates=settled.updates,
            problems=settled.problems,
            classified=classifier_text(request) if settled.by == "classifier" else "",
        )
        self._record(entry)
        return decision

    def close(self) -> None:
        """Close the audit log, with its folder within its bounds."""
        if self._audit:
            self._audit.close()

    def _record(self, entry: AuditEntry) -> None:
        if self._audit:
            self._audit.write(entry)

    async def _decide_by_policy(self, request: CallRequest, evidence: Evidence) -> tuple[Case, Decision]:
        request.policy = policy = self._policy_for(str(request.ctx.cwd), request.ctx.agent)
        return await decide_request(request, evidence, policy, self._conditions)

    def _policy_for(self, folder: str, agent: AgentIdentity) -> Policy:
        """The policy in force for a call's folder, in the mode of its agent if that is stricter, within its limits."""
        policy = self.policy()
        if folder == policy.cwd and not agent.mode and not agent.tools and not agent.notes:
            return policy
        if self._moved_from is not policy or len(self._moved) > MAX_MOVED:
            self._moved_from, self._moved = policy, {}
        about = (agent.mode, agent.tools, agent.notes)
        if (found := self._moved.get((folder, about))) is None:
            moved = policy if folder == policy.cwd else policy.with_cwd(os.path.realpath(folder))
            moved = moved.with_mode(narrow_mode(policy.mode, agent.mode)).for_agent(agent.tools, agent.notes)
            found = self._moved[folder, about] = replace(moved, version=policy.version)
        return found

    def snapshot(self, run: RunContext) -> Policy:
        """The policy in force for the calls of a run."""
        return self._policy_for(str(run.cwd), run.agent)

    def adopt(self, change: ContextChange, run: RunContext, *, consented: bool) -> str:
        """Change the policy of the session as a call asks; returns why that is impossible, or an empty text."""
        if not run.agent.is_main and (change.mode or change.leave_plan or change.add_directories):
            return "a sub-agent cannot change the mode or the working folders of the session"
        real = replace(
            change,
            cwd=change.cwd and Path(os.path.realpath(change.cwd)),
            add_directories=tuple(map(os.path.realpath, change.add_directories)),
        )
        missing = [folder for folder in real.add_directories if not os.path.isdir(folder)]  # noqa: PTH112
        return f"{missing[0]!r} is not a folder" if missing else self.policy.adopt(real, consented=consented)

    # Questions and answers

    async def _settle(self, request: CallRequest, evidence: Evidence, case: Case, decision: Decision) -> Resolution:
        question = make_question(next(self._numbers), request, case, decision, self.policy.persist)
        once: ResolveOnce[AnswerOrDecision] = ResolveOnce()
        request.ctx.abort.listen(partial(_resolve_aborted, once))
        if not once.is_resolved:
            rules = partial(self._changed_rules, request, evidence)
            await self._approvers.ask(PendingApproval(request, evidence, case, decision, question, once, rules))
        if not once.is_resolved:
            refused = await self._with_remedy(request, evidence, case, refuse_unasked(decision, NO_ANSWERER))
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
        problems = await self.policy.change(answer.updated_permissions)
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
            return (await self._decide_by_policy(request, evidence))[1]
        use, tool = ToolUse(request.use.id, request.use.name, changed), request.tool
        args, problem = parse(tool, changed)
        if problem is not None:
            opinion = Opinion(Strength.DENY, Verdict.DENY, "input", f"the changed input does not fit: {problem}")
            return Decision(Verdict.DENY, opinion.reason, (opinion,), self.policy().version)
        ctx = request.ctx.replace(use=use)
        # Hooks spoke about another input, and the answer that changed the input settles the doubts of validation.
        said = Evidence(check=await tool.check_permission(args, ctx))
        other = CallRequest.of(use, tool, args, ctx)
        decision = (await self._decide_by_policy(other, said))[1]
        request.policy = other.policy
        return decision

    async def _with_remedy(self, request: CallRequest, evidence: Evidence, case: Case, decision: Decision) -> Decision:
        """The refusal with what would have allowed the call."""
        if not self._finds_remedies:
            return decision
        return replace(decision, remedy=await find_remedy(request, evidence, case))

    async def _changed_rules(self, request: CallRequest, evidence: Evidence) -> Decision:
        """Wait until a policy change decides the call."""
        changed = asyncio.Event()
        forget = self.policy.listen(changed.set)
        try:
            while True:
                await changed.wait()
                changed.clear()
                _, decision = await self._decide_by_policy(request, evidence)
                if decision.verdict is not Verdict.ASK:
                    return decision
        finally:
            forget()


def name_agent(decision: Decision, agent: AgentIdentity) -> Decision:
    """The decision with a reason that names the sub-agent whose call it is, by the agents that lead to it."""
    if not agent.path:
        return decision
    return replace(decision, reason=f"{decision.reason} (agent {' > '.join(agent.path)})")


def answerer(who: str, name: str) -> str:
    """Who answered, as the audit log names them: with the name of the person, if several could."""
    return f"{who} {name}" if name else who


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
