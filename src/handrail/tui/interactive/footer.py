"""The line below the input: mode, model, how full the window is, what it cost, what runs in the background."""

from handrail.loop.usage import total_dollars
from handrail.records import record
from handrail.session.background import running_tasks
from handrail.session.session import Session
from handrail.tui.interactive.paint import Theme, paint
from handrail.tui.text import clip

WIDE_OPEN = "bypassPermissions"


@record
class FooterFacts:
    """What the footer tells of a session."""

    mode: str
    model: str
    percent: float
    dollars: float | None
    tasks: int


def footer_facts(session: Session) -> FooterFacts:
    """The facts of the moment."""
    return FooterFacts(
        mode=session.mode,
        model=session.conversation.config.model_name,
        percent=session.usage.window()["percentage"],
        dollars=total_dollars(session.usage.spent.values()) if session.usage.spent else 0.0,
        tasks=len(running_tasks(session.services)),
    )


def footer_line(facts: FooterFacts, width: int, theme: Theme) -> str:
    """The facts in one line that fits; the mode goes last, for it must be seen, and the key for it first."""
    parts = [facts.model, f"{facts.percent:g} % of context"]
    if facts.dollars is None or facts.dollars:
        parts.append("price unknown" if facts.dollars is None else f"${facts.dollars:.2f}")
    if facts.tasks:
        parts.append(f"{facts.tasks} in the background (Ctrl+T)")
    rest = " | " + " | ".join(parts)
    mode = f"mode {facts.mode} (Shift+Tab)"
    if len(mode) + len(rest) > width:
        mode = clip(f"mode {facts.mode}", width)
    rest = clip(rest, width - len(mode)) if width - len(mode) > 8 else ""
    return paint(mode, theme.bad if facts.mode == WIDE_OPEN else theme.accent) + paint(rest, theme.dim)
