"""The way out of refusals: the flags under which refused calls would have run."""

import shlex
from collections.abc import Iterable

from handrail.loop.events import Denial, LoopEvent, RunEnded
from handrail.tools.delegation import AgentNews
from handrail.tools.events import CallProgress
from handrail.tools.permission import Update, rules_and_mode

DENYING_EVENTS = (RunEnded, CallProgress)
"""The events that `denials_of` may find refused calls in."""


def allowing_flags(updates: Iterable[Update]) -> str:
    """The flags that stand for these permission updates, quoted for a shell; empty if there is none."""
    rules, mode = rules_and_mode(updates)
    parts = ["--allowedTools", *map(shlex.quote, rules)] if rules else []
    return " ".join([*parts, *(["--permission-mode", mode] if mode else [])])


def way_out(denials: Iterable[Denial]) -> str:
    """One sentence for a person that says what would allow the refused calls; empty if nothing is known."""
    refused = list(denials)
    flags = allowing_flags(update for denial in refused for update in denial.remedy)
    broken = dict.fromkeys(denial.broken for denial in refused if denial.broken)
    unhelped = [denial for denial in refused if denial.unasked and not denial.remedy]
    ways = [f"correct the rule in {place}" for place in broken]
    ways += [f"add {flags}"] if flags else []
    if unhelped:
        ways.append("run it on a terminal, where you are asked (--ask)")
    return f"To allow what was refused: {'; or '.join(ways)}." if ways else ""


def denials_of(event: LoopEvent) -> tuple[Denial, ...]:
    """The refused calls that an event tells of: those of a run that ended, or of a sub-agent's."""
    match event:
        case RunEnded(denials=denials):
            return denials
        case CallProgress(progress=AgentNews(event=RunEnded() | CallProgress() as inner)):
            return denials_of(inner)
        case _:
            return ()
