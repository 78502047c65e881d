"""A gate over real rules: what the policy says, then a fixed person or nobody."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from handrail.dispatch.gate import Approver, WithoutPolicy
from handrail.files.paths import exists, list_folder, locate, match_files, resolve
from handrail.permissions.case import make_case
from handrail.permissions.facts import Evidence, facts_of
from handrail.permissions.file_access import Lookup
from handrail.permissions.layers import decide
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.tools.permission import Decision, Verdict
from handrail.tools.request import CallRequest

LOOKUP = Lookup(resolve, locate, match_files, exists, list_folder)


class RuleGate(WithoutPolicy):
    """Judges by rules; what they leave to a person goes to the approver, and without one it is refused."""

    def __init__(self, folder: Path, approver: Approver | None = None, **rules: Sequence[str]) -> None:
        self._approver = approver
        self._policy = Policy.empty(str(folder), str(folder))
        for behaviour, texts in rules.items():
            self._policy = self._policy.adding(Behaviour(behaviour), texts, RuleSource("user"))

    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
        decision = decide(make_case(request.use, self._policy, LOOKUP, facts_of(request, evidence)))
        if decision.verdict is not Verdict.ASK:
            return decision
        if self._approver is not None:
            return await self._approver.approve(request, decision)
        return replace(decision, verdict=Verdict.DENY, reason=f"{decision.reason}, and there is no one to ask")
