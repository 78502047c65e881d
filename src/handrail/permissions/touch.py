"""
What a call does with one place, and what the policy thinks of that place.

Judged once, when the case is built: decisions and explanations only read the answers.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from handrail.files.paths import FileKind, FolderContents, Place
from handrail.permissions.paths import below, doubt, protected_place
from handrail.permissions.patterns import PathIndex
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Rule


class FileEffect(Enum):
    """What a call does with a place."""

    READ = "read"
    WRITE = "write"
    REMOVE = "remove"
    REMOVE_SOME = "remove some of"  # what passes a test or a filter
    BELOW = "may read"  # a file in a folder that a command goes through
    MAYBE = "may touch"  # an argument of a program that is not known


READING = (FileEffect.READ, FileEffect.BELOW)
REMOVING = (FileEffect.REMOVE, FileEffect.REMOVE_SOME)


class Touch(NamedTuple):
    """One place a call touches. `place` None: which one cannot be told."""

    place: Place | None
    access: FileEffect
    shown: str
    part: int = -1
    """Which part of a command line does it."""
    redirected: bool = False
    """The shell opens it for the command."""
    paths: tuple[str, ...] = ()
    """The path as it really is and, if that differs, as spelled; a folder ends with a slash."""
    doubt: str = ""
    """Why it is not simply part of the work."""
    protected: str = ""
    """The protected name in it, if it would be written."""
    clear: bool = False
    """The mode or a rule lets the file tools do the same."""


class Lookup(NamedTuple):
    """The file system as far as deciding needs it: the functions of these names in `handrail.files.paths`."""

    resolve: Callable[[str, str, str], Place]
    locate: Callable[[str, str], Place]
    expand: Callable[[str, str, bool], tuple[Place, ...]]
    exists: Callable[[str, str], bool]
    beneath: Callable[[str, bool], FolderContents | None]


def touch_of(
    policy: Policy, place: Place | None, access: FileEffect, shown: str, part: int = -1, *, redirected: bool = False
) -> Touch:
    """A touch with the policy's judgement of its place."""
    if place is None:
        return Touch(None, access, shown, part, redirected, doubt=f"which file {shown!r} means is not known")
    reads = access in READING
    guard = "" if reads else protected_place(place, policy.home, policy.own)
    if not guard and not reads and place.real not in policy.working_dirs:  # a folder takes along what lies in it
        guard = next((folder for folder in policy.own if below(folder, place.real)), "")
    touch = Touch(place, access, shown, part, redirected, paths_of(place), protected=guard)
    if access in (*REMOVING, FileEffect.MAYBE):
        return touch._replace(clear=True)
    found = doubt(place, policy.read_prefixes if reads else policy.prefixes, writes=not reads)
    return touch._replace(doubt=found, clear=not guard and lets(policy, touch, found))


def lets(policy: Policy, touch: Touch, doubtful: str) -> bool:
    """As the file tools would decide: reads inside, edits where the mode accepts them, or a rule that allows it."""
    allow = policy.index[Behaviour.ALLOW]
    if touch.access in READING:
        return not doubtful or bool(allowed_by(touch, allow.read))
    return (not doubtful and policy.mode == "acceptEdits") or bool(allowed_by(touch, allow.edit))


def paths_of(place: Place) -> tuple[str, ...]:
    end = "/" if place.kind is FileKind.FOLDER and place.real != "/" else ""
    return (place.real + end,) if place.real == place.absolute else (place.real + end, place.absolute + end)


def allowed_by(touch: Touch, index: PathIndex) -> list[Rule]:
    """The rules that match the place both as it really is and as spelled."""
    if not touch.paths or index.empty:
        return []
    first, *others = map(index.find, touch.paths)
    return [rule for rule in first if all(rule in found for found in others)] if others else first
