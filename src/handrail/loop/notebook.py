"""The end of a run as notebooks show it."""

from html import escape

from handrail.loop.events import Denial, RunEnded


def ended_html(ended: RunEnded) -> str:
    """The answer, what it took, and what was refused. Nothing of it is markup of the model's."""
    cost = "" if ended.dollars is None else f", ${ended.dollars:.4f}"
    tokens = sum(each.tokens for each in ended.spent.values())
    took = f"{ended.why.value.replace('_', ' ')}: {ended.turns} turns, {ended.seconds:.1f} s, {tokens:,} tokens{cost}"
    problem = f"<p>{escape(ended.problem)}</p>" if ended.problem else ""
    refused = "".join(f"<li>{_denial_html(each)}</li>" for each in ended.denials)
    denials = f"<details><summary>{len(ended.denials)} refused</summary><ul>{refused}</ul></details>" if refused else ""
    text = f'<div style="white-space: pre-wrap">{escape(ended.text)}</div>'
    return f"<div>{text}{problem}<small>{escape(took)}</small>{denials}</div>"


def _denial_html(denial: Denial) -> str:
    return f"<b>{escape(denial.use.name)}</b> {escape(str(dict(denial.use.input))[:200])}: {escape(denial.reason)}"
