"""
What a command reads of the folders that it goes through: `grep -r key .` reads `.env`, `diff -r a b` follows links.

Looked at as far as it matters: files that could not be read without a question, and links that lead to such.
"""

import posixpath
from collections.abc import Callable, Iterator

from handrail.files.paths import FileKind, Place
from handrail.permissions.contents import OBJECTING, objected
from handrail.permissions.hidden import hidden
from handrail.permissions.policy import Policy
from handrail.permissions.touch import FileEffect, Lookup, Touch, touch_of
from handrail.shell.listing import gone_through
from handrail.shell.model import Below, Segment, Word

MAX_FOLDERS = 50
NAMED_ONLY = frozenset(("diff", "colordiff"))  # what they are to compare has to be there
VISIBLE = Below(links=False, hidden=False)


def passing(
    segment: Segment,
    part: int,
    places: Callable[[Segment, Word], Iterator[Place | None]],
    policy: Policy,
    lookup: Lookup,
) -> Iterator[Touch]:
    """The files that one command of a line may come across and that somebody would have to be asked about."""
    for source, word, below in gone_through(segment):
        if below.links and source.entry not in NAMED_ONLY and not lookup.exists(policy.cwd, "/"):
            yield Touch(
                None, FileEffect.BELOW, str(word), part, doubt="the working folder is not there to be looked at"
            )
            return
        for place in places(source, word):
            if place is not None:
                yield from through(place, below, part, policy, lookup)


def through(top: Place, below: Below, part: int, policy: Policy, lookup: Lookup) -> Iterator[Touch]:
    kept_back = hidden(policy)
    left, seen = [top], {top.real}
    while left:
        folder = left.pop()
        if folder.kind is not FileKind.FOLDER:
            continue
        found = lookup.beneath(folder.real, below.hidden)
        if found is None and below == VISIBLE and all(policy.index[kind].read.empty for kind in OBJECTING):
            continue  # what is left to be met is a telling name that does not begin with a dot
        if found is None or len(seen) > MAX_FOLDERS:
            yield Touch(
                None, FileEffect.BELOW, folder.spelling, part, doubt=f"{folder.spelling!r} holds too much to look at"
            )
            return
        for path in (posixpath.join(folder.real, name) for name in found.paths):
            if kept_back(path):
                yield touch_of(policy, Place(path, path, path), FileEffect.BELOW, path, part)
        for name in found.links if below.links else ():
            place = lookup.locate(posixpath.join(folder.real, name), "/")
            touch = touch_of(policy, place, FileEffect.BELOW, place.absolute, part)
            if (touch.doubt and place.kind is not FileKind.LINK) or objected(touch, policy):
                yield touch
            elif place.kind is FileKind.FOLDER and not inside(place.real, seen):
                seen.add(place.real)
                left.append(place)


def inside(path: str, folders: set[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
