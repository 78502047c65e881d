"""The coordinator of several agents: automatic checks first, what they leave open goes to somebody who can answer."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from handrail.dispatch.approval.judging import judge
from handrail.dispatch.approval.question import Answer, Handler, Question
from handrail.permissions.case import Facts
from handrail.permissions.policy import Policy
from handrail.tools.permission import Allow, Deny, Strength, Verdict

AutomaticCheck: TypeAlias = Callable[[Question], Awaitable[Answer | None]]


class Coordinator:
    """Answers by checks, in their order, and escalates what none of them answers."""

    who = "coordinator"

    def __init__(self, checks: Sequence[AutomaticCheck] = (), escalate: Handler | None = None) -> None:
        self._checks = tuple(checks)
        self._escalate = escalate

    async def ask(self, question: Question) -> Answer | None:
        """The first answer; None when nobody has one."""
        for check in self._checks:
            answer = await check(question)
            if answer is not None:
                return answer
        return await self._escalate.ask(question) if self._escalate else None

    def update(self, question: Question) -> None:
        """Hand on what changed."""
        if self._escalate:
            self._escalate.update(question)


def by_policy(policy: Callable[[], Policy]) -> AutomaticCheck:
    """
    The check by the coordinator's own rules, seen from the folder of whoever asks.

    Its yes answers what nobody objected to; an ask rule, a tool that needs a person and protected files are handed on.
    """

    async def check(question: Question) -> Answer | None:
        facts = Facts(access=question.access, read_only=question.read_only)
        _, decision = judge(question.use, policy().with_cwd(question.cwd), facts)
        objection = max((o.strength for o in question.opinions if o.verdict is Verdict.ASK), default=Strength.NOBODY)
        match decision.verdict:
            case Verdict.ALLOW:
                return Allow() if objection < Strength.PROTECTED_PATH else None
            case Verdict.DENY:
                return Deny(decision.reason)
            case _:
                return None

    return check
