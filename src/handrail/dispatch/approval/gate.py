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
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.dispatch.approval.audit import Audit, AuditEntry
from handrail.dispatch.approval.decide import Conditions, conditions_unchecked, decide_request
from handrail.dispatch.approval.live import LivePolicy
from handrail.lazy import lazy
from handrail.permissions.case import Case
from handrail.permissions.facts import Evidence
from handrail.permissions.layers import winner
from handrail.permissions.modes import narrow_mode
from handrail.permissions.policy import Policy
from handrail.tools.context import AgentIdentity, RunContext
from handrail.tools.output import ContextChange
from handrail.tools.permission import Decision, Verdict
from handrail.tools.request import CallRequest

if TYPE_CHECKING:
    from handrail.dispatch.approval import answers, approvers
    from handrail.dispatch.approval.classifier import Classifier
    from handrail.dispatch.approval.question import Handler, PermissionHooks
else:
    answers = lazy("handrail.dispatch.approval.answers")  # 5 ms, and most first calls need no question
    approvers = lazy("handrail.dispatch.approval.approvers")

MAX_MOVED = 64
"""How many policies for the folders and modes of agents are kept."""


class PolicyGate:
    """Decides by the policy in force. Questions go to the approvers; without an answer the call is refused."""

    def __init__(
        self,
        policy: LivePolicy,
        handler: "Handler | None" = None,
        *,
        hooks: "PermissionHooks | None" = None,
        classifier: "Classifier | None" = None,
        conditions: Conditions = conditions_unchecked,
        audit: Audit | None = None,
        finds_remedies: bool = True,
        agent_patience: float | None = None,
        question_patience: float | None = None,
    ) -> None:
        self.policy = policy
        self._approvers = handler, hooks, classifier, agent_patience, question_patience
        self._conditions = conditions
        self._audit = audit
        self._finds_remedies = finds_remedies
        self._moved: dict[tuple[str, object], Policy] = {}
        self._moved_from: Policy | None = None

    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
        started = time.perf_counter()
        case, decision = await self._decide_by_policy(request, evidence)
        decided = time.perf_counter()
        if decision.verdict is not Verdict.ASK:
            if decision.verdict is Verdict.DENY and winner(decision).layer == "mode":
                decision = await self._answers.with_remedy(request, evidence, case, decision)
            decision = name_agent(decision, request.ctx.agent)
            self._record(AuditEntry(request, case, decision, winner(decision).layer, decided - started))
            return decision
        try:
            settled = await self._answers.settle(request, evidence, case, decision)
        except BaseException as error:  # recorded and raised again
            ended = "cancelled" if isinstance(error, asyncio.CancelledError) else f"failed: {error!r}"
            waited = time.perf_counter() - decided
            self._record(
                AuditEntry(request, case, decision, approvers.NO_ANSWERER, decided - started, waited, ended, asked=True)
            )
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
            classified=approvers.classifier_text(request) if settled.by == "classifier" else "",
        )
        self._record(entry)
        return decision

    @cached_property
    def _answers(self) -> "answers.Answers":
        asked = approvers.Approvers(*self._approvers)
        return answers.Answers(self.policy, asked, self._decide_by_policy, finds_remedies=self._finds_remedies)

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
        policy, lent = self.policy(), self.policy.lent_to(agent.path)
        if folder == policy.cwd and not agent.mode and not agent.tools and not agent.notes and not lent:
            return policy
        if self._moved_from is not policy or len(self._moved) > MAX_MOVED:
            self._moved_from, self._moved = policy, {}
        about = (agent.mode, agent.tools, agent.notes, lent)
        if (found := self._moved.get((folder, about))) is None:
            moved = policy if folder == policy.cwd else policy.with_cwd(os.path.realpath(folder))
            moved = moved.with_mode(narrow_mode(policy.mode, agent.mode)).for_agent(agent.tools, agent.notes)
            for change in lent:
                moved = change(moved)
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


def name_agent(decision: Decision, agent: AgentIdentity) -> Decision:
    """The decision with a reason that names the sub-agent whose call it is, by the agents that lead to it."""
    if not agent.path:
        return decision
    return replace(decision, reason=f"{decision.reason} (agent {' > '.join(agent.path)})")
