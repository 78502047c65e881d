"""The gate that judges calls by a policy: the permission language, applied to a call that wants to run."""

from dataclasses import replace

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.flags import flag
from handrail.dispatch.gate import Approver, Evidence, Request
from handrail.files.paths import exists, expand, locate, resolve
from handrail.permissions.case import Facts, make_case
from handrail.permissions.layers import decide
from handrail.permissions.policy import Policy
from handrail.permissions.touch import Lookup
from handrail.tools.permission import Decision, Opinion, Strength, Verdict

LOOKUP = Lookup(resolve, locate, expand, exists)


class PolicyGate:
    """Decides by a frozen policy; what it would ask for goes to the approver, and without one it is refused."""

    def __init__(self, policy: Policy, approver: Approver | None = None) -> None:
        self.policy = policy
        self._approver = approver

    async def decide(self, request: Request, evidence: Evidence) -> Decision:
        decision = self.judge(request, evidence)
        if decision.verdict is not Verdict.ASK:
            return decision
        if self._approver:
            return await self._approver.approve(request, decision)
        reason = f"{decision.reason}, and nobody is here to be asked"
        nobody = Opinion(Strength.NOBODY, Verdict.DENY, "person", reason)
        return replace(decision, verdict=Verdict.DENY, reason=reason, opinions=(*decision.opinions, nobody))

    def judge(self, request: Request, evidence: Evidence) -> Decision:
        """What the policy says, before anybody is asked."""
        tool = request.tool
        facts = Facts(
            mcp=tool.mcp,
            read_only=request.read_only,
            destructive=flag(tool.is_destructive, request.args),
            needs_person=tool.requires_user_interaction,
            hook=evidence.hook,
            doubt=evidence.doubt,
            check=evidence.check,
        )
        use = ToolUse(request.use.id, tool.name, request.use.input)
        case = make_case(use, self.policy, LOOKUP, facts)
        decision = decide(case)
        return (
            replace(decision, places=tuple(touch.place for touch in case.touches if touch.place))
            if case.touches
            else decision
        )
