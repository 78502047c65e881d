"""
What a command does to files that it does not name: `rm -r src` removes what is in src, `cp a.txt src` writes src/a.txt.

Looked at as far as it matters: what a deny or ask rule objects to, and for files that are put somewhere also what is
protected there. To take a protected file away together with its folder changes nothing that runs later.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator

from handrail.files.paths import FileKind, Place
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour
from handrail.permissions.touch import READING, FileEffect, Lookup, Touch, touch_of
from handrail.shell.model import Does, Segment, Word

# The last of their words is where the others go; all else that writes a folder may write what is in it.
COPIERS = frozenset(("cp", "mv", "ln", "install", "rsync", "scp"))
SHALLOW = frozenset(("mkdir", "touch", "rmdir"))
OBJECTING = (Behaviour.DENY, Behaviour.ASK)

Places = Callable[[Word], Iterable[Place | None]]


def unnamed(segment: Segment, part: int, places: Places, policy: Policy, lookup: Lookup) -> Iterator[Touch]:
    """The touches of one command of a line. What a word means in which folder, `places` says."""
    if segment.name in SHALLOW or not segment.writes:
        return
    written, read = known(segment.writes, places), known(segment.reads, places)
    if segment.name not in COPIERS:
        for place in written:
            yield from inside(place, FileEffect.WRITE, part, policy, lookup)
        return
    for place in read:
        moved = any(effect.removes and effect.does is Does.READS for effect in segment.effects)
        access = FileEffect.WRITE if moved else FileEffect.READ
        yield from inside(place, access, part, policy, lookup)
    for target in written:
        for source in (*read, *written):
            if source is not target:  # `cp -t target source` writes both, as far as its words tell
                yield from landing(source, target, part, policy, lookup)


def known(words: Iterable[Word], places: Places) -> list[Place]:
    return [place for word in words for place in places(word) if place is not None]


def inside(folder: Place, access: FileEffect, part: int, policy: Policy, lookup: Lookup) -> Iterator[Touch]:
    """What lies in a folder that is taken as a whole, if there is a rule that could object."""
    indexes = [policy.index[kind] for kind in OBJECTING]
    if folder.kind is not FileKind.FOLDER or all(index.read.empty and index.edit.empty for index in indexes):
        return
    for name in listed(folder, lookup):
        touch = touch_in(folder, name, access, part, policy)
        if name is None or objected(touch, policy):
            yield touch


def landing(source: Place, target: Place, part: int, policy: Policy, lookup: Lookup) -> Iterator[Touch]:
    """Where something comes to lie, and what is in it: a link that is there already leads elsewhere."""
    name = posixpath.basename(source.spelling.rstrip("/"))
    there = target
    if target.kind is FileKind.FOLDER and name not in ("", ".", ".."):
        there = lookup.locate(posixpath.join(target.real, name), "/")
        yield touch_of(policy, there, FileEffect.WRITE, there.absolute, part)
    if source.kind is not FileKind.FOLDER:
        return
    for inner in listed(source, lookup):
        touch = touch_in(there, inner, FileEffect.WRITE, part, policy)
        if touch.place is not None and lookup.exists(touch.place.real, "/"):
            touch = touch_of(policy, lookup.locate(touch.place.real, "/"), FileEffect.WRITE, touch.shown, part)
            if touch.doubt:
                yield touch
        if inner is None or touch.protected or objected(touch, policy):
            yield touch


def listed(folder: Place, lookup: Lookup) -> Iterable[str | None]:
    """The paths in a folder; None stands for more than can be looked at."""
    found = lookup.beneath(folder.real, True)
    return (None,) if found is None else found.paths


def touch_in(folder: Place, name: str | None, access: FileEffect, part: int, policy: Policy) -> Touch:
    if name is None:
        return Touch(None, access, folder.spelling, part, doubt=f"{folder.spelling!r} holds too much to look at")
    path = posixpath.join(folder.real, name)
    return touch_of(policy, Place(path, path, path), access, path, part)


def objected(touch: Touch, policy: Policy) -> bool:
    """Whether a deny or ask rule matches it: what may not be read may not be written either."""
    for kind in OBJECTING:
        index = policy.index[kind]
        if any(index.read.find(path) for path in touch.paths):
            return True
        if touch.access not in READING and any(index.edit.find(path) for path in touch.paths):
            return True
    return False
