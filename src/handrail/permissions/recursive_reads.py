"""
Files that a command reads in folders that it walks: `grep -r key .` reads `.env`, `diff -r a b` follows links.

Only files that matter are listed: those that need a permission question, and links that lead to such files.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator

from handrail.files.credentials import holds_credentials
from handrail.files.paths import FileKind, Place
from handrail.permissions.file_access import OBJECTING, FileAccess, FileEffect, Lookup, assess_place
from handrail.permissions.hidden_files import hidden_file_check
from handrail.permissions.implied_paths import has_objection
from handrail.permissions.left_out import can_leave_out, leave_out, leave_out_all, lies_in_left_out
from handrail.permissions.policy import Policy
from handrail.shell.listing import gone_through, has_name
from handrail.shell.model import Below, Segment, Word

MAX_FOLDERS = 50
NAMED_ONLY = frozenset(("diff", "colordiff"))  # they fail if a file they compare is missing
EVERY_FILE = Below(links=True, hidden=True)


def recursive_reads(
    segment: Segment,
    part: int,
    places: Callable[[Segment, Word], Iterator[Place | None]],
    policy: Policy,
    lookup: Lookup,
    *,
    leaves_out: bool = False,
    checked: bool = False,
) -> Iterator[FileAccess]:
    """
    The files that one command of a line may read and that need a permission question.

    `leaves_out`: where the command can leave out a secret, it is told to. `checked`: see `gone_through`.
    """
    leaves_out = leaves_out and can_leave_out(segment, policy)
    for source, word, below in gone_through(segment, checked=checked):
        if below.links and source.entry not in NAMED_ONLY and not lookup.exists(policy.cwd, "/"):
            yield FileAccess(
                None, FileEffect.BELOW, str(word), part, doubt="the working folder is not there to be looked at"
            )
            return
        for place in places(source, word):
            if place is None:
                continue
            leaves = leaves_out and not below.links
            for file in reads_below(place, below, part, policy, lookup, leaves_out=leaves):
                yield leave_out(file, place.real, policy) if leaves else file


def is_unguarded(policy: Policy) -> bool:
    """Whether no rule keeps files from being read."""
    return all(policy.index[kind].read.empty for kind in OBJECTING)


def reads_below(
    top: Place, below: Below, part: int, policy: Policy, lookup: Lookup, *, leaves_out: bool = False
) -> Iterator[FileAccess]:
    kept_back = hidden_file_check(policy)
    left, seen = [top], {top.real}
    name = "" if is_found_itself(top, below.name) else below.name
    while left:
        folder = left.pop()
        if folder.kind is not FileKind.FOLDER:
            continue
        found = lookup.beneath(folder.real, below.hidden)
        if found is None and leaves_out and is_unguarded(policy) and not lies_in_left_out(folder.real):
            # All that a search could still find there are those with the name of a secret.
            yield from leave_out_all(part)
            continue
        if found is None or len(seen) > MAX_FOLDERS:
            yield FileAccess(
                None, FileEffect.BELOW, folder.spelling, part, doubt=f"{folder.spelling!r} holds too much to look at"
            )
            return
        narrow = name if folder is top else ""
        for path in paths_in(folder, found.paths, narrow):
            if kept_back(path):
                place = Place(path, path, path, credentials=holds_credentials(path))
                yield assess_place(policy, place, FileEffect.BELOW, path, part)
        for link in paths_in(folder, found.links, narrow) if below.links else ():
            place = lookup.locate(link, "/")
            file = assess_place(policy, place, FileEffect.BELOW, place.absolute, part)
            if (file.doubt and place.kind is not FileKind.LINK) or has_objection(file, policy):
                yield file
            elif place.kind is FileKind.FOLDER and not any(f"{place.real}/".startswith(f"{known}/") for known in seen):
                seen.add(place.real)
                left.append(place)


def paths_in(folder: Place, names: Iterable[str], pattern: str) -> Iterator[str]:
    """The paths of names in a folder: those that have, or lie in a folder that has, a name of the pattern, if any."""
    return (posixpath.join(folder.real, name) for name in names if not pattern or has_name(name, pattern))


def is_found_itself(top: Place, pattern: str) -> bool:
    """Whether a folder where a search begins may have a name of the pattern: then all that is in it is found."""
    return any(has_name(path, pattern) for path in (top.real, top.absolute, top.spelling))
