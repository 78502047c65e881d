"""Finds what would have allowed a refused call, so that the refusal can name the way out."""

from dataclasses import replace

from handrail.dispatch.approval.decide import conditions_left_to_tools, decide_request
from handrail.permissions.case import Case
from handrail.permissions.facts import Evidence
from handrail.permissions.policy import Policy
from handrail.permissions.remedy import possible_remedies
from handrail.permissions.update import apply_update
from handrail.tools.permission import Update, Verdict
from handrail.tools.request import CallRequest


async def find_remedy(request: CallRequest, evidence: Evidence, case: Case) -> tuple[Update, ...]:
    """The first updates under which the policy allows the call; none if nothing of what is tried does."""
    known = replace(evidence, unmet=case.facts.unmet)  # no policy changes whether the conditions of a command hold
    for updates in possible_remedies(case):
        policy: Policy | None = case.policy
        for update in updates:
            changed = apply_update(policy, update) if policy else None
            policy = changed if isinstance(changed, Policy) else None
        if policy is None:
            continue
        _, decision = await decide_request(request, known, policy, conditions_left_to_tools)
        if decision.verdict is Verdict.ALLOW:
            return updates
    return ()
