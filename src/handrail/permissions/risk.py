"""The risk of a call that the user is asked about. It is shown and decides nothing."""

from enum import Enum

from handrail.http.addresses import AddressClass
from handrail.permissions.case import Case
from handrail.permissions.layers import critical_paths
from handrail.records import record
from handrail.shell.model import Does


class Level(Enum):
    """Three levels, as many as a user tells apart at a glance."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@record
class Risk:
    """The level, and why it is not lower."""

    level: Level
    reasons: tuple[str, ...] = ()


def risk(case: Case) -> Risk:
    """The risk of one call, from its flags, its files and the effects of its commands."""
    high = tuple(dict.fromkeys(high_risks(case)))
    if high:
        return Risk(Level.HIGH, high)
    doubts = tuple(dict.fromkeys(file.doubt for file in case.files if file.doubt))
    if case.read_only and not doubts:
        return Risk(Level.LOW, ("it only reads",))
    return Risk(Level.MEDIUM, doubts or (("it changes something",) if not case.read_only else ()))


def high_risks(case: Case) -> list[str]:
    found = [*case.facts.warnings]
    if critical := critical_paths(case):
        found.append(critical.reason)
    found += [f"{t.shown!r} is protected ({t.protected})" for t in (*case.files, *case.named_files) if t.protected]
    found += [
        f"{t.host} is on this machine or in its network" for t in case.targets if t.reach is AddressClass.INTERNAL
    ]
    if case.analysis is not None:
        found += [f"it is not understood: {problem.text}" for problem in case.analysis.problems[:1]]
        found += [f"{part.shown!r} removes files" for part in case.parts if part.removes]
        found += ["it uses the network" for segment in case.analysis.segments if segment.does(Does.NETWORK)]
        found += ["it runs a program that is not known" for s in case.analysis.segments if s.does(Does.STARTS)]
    return found
