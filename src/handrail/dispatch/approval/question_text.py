"""What people read of a question, the same wherever they are asked."""

from collections.abc import Sequence

from handrail.dispatch.approval.question import Proposal, Question
from handrail.permissions.rules import MCP
from handrail.tools.call_report import opinion_text
from handrail.tools.permission import Verdict


def question_title(question: Question) -> str:
    """Which tool asks, and for which agent."""
    path = " > ".join(question.agent.path) or question.agent.type
    agent = "" if question.agent.is_main else f", for the sub-agent {path}"
    name = question.name or question.tool
    if name != question.tool and question.tool.startswith(MCP):  # a server gives its tools whatever title it likes
        name = f"{name} ({question.tool})"
    return f"{name} needs your permission{agent}"


def risk_text(question: Question) -> str:
    """The level of the risk, and why it is not lower."""
    return ": ".join(filter(None, (question.risk.level.value, "; ".join(question.risk.reasons))))


def opinion_texts(question: Question) -> list[str]:
    """What layers of the decision said against the call, but for what the reason says already."""
    others = [each for each in question.opinions if each.source or each.reason != question.reason]
    return [opinion_text(each) for each in others if each.verdict is not Verdict.ALLOW]


def always_text(proposals: Sequence[Proposal]) -> str:
    """The rules that "always" adds, and where; empty if it adds none."""
    places: dict[str, list[str]] = {}
    for each in proposals:
        places.setdefault(each.where, []).append(each.text)
    return "; ".join(f"{', '.join(texts)} (in {where})" for where, texts in places.items())
