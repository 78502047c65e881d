"""Why a command line that rules do not cover needs a question."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.permissions.case import Case
from handrail.permissions.matching import Coverage

if TYPE_CHECKING:  # every first call loads this module, and no Read what reads command lines
    from handrail.permissions.command_parts import CommandPart

CLEAN = "the repository names no programs to run, which the rest of the line may change"


def open_reason(case: Case, found: Coverage) -> str:
    """What is open about a line, for the person who is asked: its first part that neither reads only nor has a rule."""
    assert case.analysis is not None
    if case.analysis.problems:
        return f"the command is not understood: {case.analysis.problems[0].text}"
    if not case.parts:
        return "the command is empty"
    if case.facts.unmet:
        return f"its conditions do not hold: {'; '.join(case.facts.unmet)}"
    if case.background:
        return "a part of it keeps running in the background, which no rule for a command covers"
    part = case.parts[found.open[0]]
    if part.conditional and part.read_only:
        return f"{part.shown!r} is not covered by a rule and only reads where {CLEAN}"
    return f"{part.shown!r} is not covered by a rule and not read-only: {why_not_read_only(case.parts, found.open[0])}"


def why_not_read_only(parts: "Sequence[CommandPart]", at: int) -> str:
    """Why a part is not read-only: what it does itself, else what the commands do that it starts."""
    children = [each.why for each in parts[at + 1 : parts[at].until] if each.why]
    return parts[at].why or "; ".join(children) or "see its files"
