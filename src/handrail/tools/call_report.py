"""A finished call in lines for people who want to know more: its input, the decision, and how long each stage took."""

import json
from dataclasses import fields

from handrail.tools.outcome import Outcome
from handrail.tools.permission import Opinion
from handrail.tools.wording import cut

MAX_INPUT = 2_000


def call_report(outcome: Outcome) -> list[str]:
    """Input, decision with every opinion, and stages."""
    lines = [f"input: {cut(json.dumps(outcome.use.input, ensure_ascii=False, default=repr), MAX_INPUT)}"]
    if (decision := outcome.decision) is not None:
        lines.append(f"decision: {', '.join(filter(None, (decision.verdict.value, decision.reason)))}")
        lines += [f"- {opinion_text(each)}" for each in decision.opinions]
    stages = ((field.name, getattr(outcome.timings, field.name)) for field in fields(outcome.timings))
    return [*lines, f"stages: {', '.join(f'{name} {seconds * 1000:.0f} ms' for name, seconds in stages)}"]


def opinion_text(opinion: Opinion) -> str:
    """The opinion of one layer: its rule with file and line, or else its reason."""
    if opinion.source:
        return f"{opinion.layer}: {opinion.source}"
    return f"{opinion.layer}: {opinion.verdict.value}, {opinion.reason}"
