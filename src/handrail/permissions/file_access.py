"""
One access of a call to a place in the file system, with the policy's assessment of that place.

Places are assessed once, when the case is built; decisions and explanations read the result.
"""

from collections.abc import Callable, Sequence
from enum import Enum

from handrail.files.paths import FileKind, FolderContents, PatternMatcher, Place, read_link
from handrail.named_tuples import NamedTuple
from handrail.permissions.paths import below, doubt, doubt_of_look, protected_place, secret_place
from handrail.permissions.patterns import PathIndex
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Rule


class FileEffect(Enum):
    """What a call does with a place."""

    READ = "read"
    LOOK = "look at"  # its name, size, kind or counts, not its contents
    LIST = "list"  # the names in one folder, not those further down
    WRITE = "write"
    REMOVE = "remove"
    REMOVE_SOME = "remove some of"  # what passes a test or a filter
    BELOW = "may read"  # a file in a folder that a command walks
    MAYBE = "may touch"  # an argument of an unknown program
    MAYBE_BELOW = "may also touch"  # a file in such a folder, or a name in a text that is run

    __hash__ = object.__hash__  # fast: every record of a decision looks effects up


LOOKING = (FileEffect.LOOK, FileEffect.LIST)
READING = (FileEffect.READ, *LOOKING, FileEffect.BELOW)
INSIDE = (FileEffect.BELOW, FileEffect.MAYBE_BELOW)
REMOVING = (FileEffect.REMOVE, FileEffect.REMOVE_SOME)
EXEMPT = (*REMOVING, FileEffect.MAYBE)
"""Not asked about for their place: removals have a layer of their own, and such an argument may be no path."""
OBJECTING = (Behaviour.DENY, Behaviour.ASK)


class FileAccess(NamedTuple):
    """One place that a call accesses. `place` None: it is unknown which."""

    place: Place | None
    effect: FileEffect
    shown: str
    part: int = -1
    """The index of the command part that does it; -1 = none."""
    redirected: bool = False
    """Whether the shell opens it for the command."""
    paths: tuple[str, ...] = ()
    """The real path and, if different, the path as spelled; a folder ends with a slash."""
    doubt: str = ""
    """Why the user should be asked about it; else empty."""
    protected: str = ""
    """The protected name in it, if it would be written."""
    clear: bool = False
    """Whether the mode or a rule allows it."""
    secret: str = ""
    """The rule that would open it, if its name says that it holds secrets and no rule does."""
    left_out: str = ""
    """The name by which the search that comes by it is told to leave it out; empty = it is not."""


class Lookup(NamedTuple):
    """The file system functions that deciding needs: those of the same names in `handrail.files.paths`."""

    resolve: Callable[[str, str, str], Place]
    locate: Callable[[str, str], Place]
    match_files: Callable[[Sequence[str | PatternMatcher], str], tuple[str, ...] | None]
    exists: Callable[[str, str], bool]
    beneath: Callable[[str, bool], FolderContents | None]
    read_link: Callable[[str], str] = read_link


def assess_place(
    policy: Policy, place: Place | None, effect: FileEffect, shown: str, part: int = -1, *, redirected: bool = False
) -> FileAccess:
    """An access with the policy's assessment of its place."""
    if place is None:
        return FileAccess(None, effect, shown, part, redirected, doubt=f"which file {shown!r} means is not known")
    reads, paths = effect in READING, paths_of(place)
    if policy.notes and is_note(place, policy.notes):
        return FileAccess(place, effect, shown, part, redirected, paths, clear=True)
    guard = "" if reads else protected_place(place, policy.home, policy.own)
    if not guard and not reads and place.real not in policy.working_dirs:  # changing a folder changes what is in it
        guard = next((folder for folder in policy.own if below(folder, place.real)), "")
    if effect in EXEMPT:
        return FileAccess(place, effect, shown, part, redirected, paths, "", guard, clear=True)
    prefixes = policy.read_prefixes if reads else policy.prefixes
    if effect in LOOKING:
        found = doubt_of_look(place, prefixes, lists=effect is FileEffect.LIST)
    else:
        found = doubt(place, prefixes, writes=not reads)
    clear = not guard and is_permitted(policy, paths, found, reads=reads)
    secret = rule_for_path(place.real, policy) if found and reads and not clear and secret_place(place) else ""
    return FileAccess(place, effect, shown, part, redirected, paths, found, guard, clear, secret)


def is_note(place: Place, folder: str) -> bool:
    """Whether a place is a note of the calling agent: a plain file in its folder, by no other name."""
    is_plain = place.kind in (FileKind.FILE, FileKind.MISSING) and place.links < 2 and not place.problem
    return is_plain and place.real == place.absolute and place.real.startswith(f"{folder}/")


def rule_for_path(path: str, policy: Policy) -> str:
    """The rule that allows reading one file."""
    if below(path, policy.home):
        return f"Read(~{path.removeprefix(policy.home)})"
    return f"Read(/{path})"


def is_permitted(policy: Policy, paths: tuple[str, ...], doubtful: str, *, reads: bool) -> bool:
    """Whether a file tool could do it: reads inside, edits that the mode accepts, or an allow rule."""
    if not doubtful and (reads or policy.mode == "acceptEdits"):
        return True
    allow = policy.index[Behaviour.ALLOW]
    return bool(allowed_by(paths, allow.read if reads else allow.edit))


def paths_of(place: Place) -> tuple[str, ...]:
    end = "/" if place.kind is FileKind.FOLDER and place.real != "/" else ""
    return (place.real + end,) if place.real == place.absolute else (place.real + end, place.absolute + end)


def allowed_by(paths: tuple[str, ...], index: PathIndex) -> list[Rule]:
    """The rules that match all paths of an access: the real one and the one as spelled."""
    if not paths or index.empty:
        return []
    first, *others = map(index.find, paths)
    return [rule for rule in first if all(rule in found for found in others)] if others else first


def guards_files(policy: Policy) -> bool:
    """Whether there are deny or ask rules about files."""
    indexes = [policy.index[kind] for kind in OBJECTING]
    return any(not index.read.empty or not index.edit.empty for index in indexes)
