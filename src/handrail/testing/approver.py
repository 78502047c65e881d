"""An approver that always gives the same answer."""

from dataclasses import dataclass, field, replace

from handrail.conversation.blocks import Json
from handrail.tools.permission import Decision, Opinion, Strength, Verdict
from handrail.tools.request import CallRequest


@dataclass
class FixedApprover:
    """Answers every question the same way, and remembers the questions."""

    allow: bool = True
    reason: str = "the test said so"
    updated_input: Json | None = None
    interrupt: bool = False
    asked: list[str] = field(default_factory=list)

    async def approve(self, request: CallRequest, decision: Decision) -> Decision:
        """The fixed answer."""
        self.asked.append(request.summary)
        verdict = Verdict.ALLOW if self.allow else Verdict.DENY
        return replace(
            decision,
            verdict=verdict,
            reason=self.reason,
            opinions=(*decision.opinions, Opinion(Strength.PERSON, verdict, "person", self.reason)),
            updated_input=self.updated_input,
            interrupt=self.interrupt,
        )
