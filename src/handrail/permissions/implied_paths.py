"""
Files that a command changes without naming them: `rm -r src` removes what is in src, `cp a.txt src` writes src/a.txt.

Only files that matter are listed: those that a deny or ask rule matches and, where files are put, protected ones.
Removing a protected file together with its folder changes nothing that runs later.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator

from handrail.files.paths import FileKind, Place
from handrail.permissions.file_access import OBJECTING, READING, FileAccess, FileEffect, Lookup, assess_place
from handrail.permissions.policy import Policy
from handrail.shell.model import Does, Segment, Word

# Their last word is the target of the others; any other command that writes a folder may write what is in it.
COPIERS = frozenset(("cp", "mv", "ln", "install", "rsync", "scp"))
SHALLOW = frozenset(("mkdir", "touch", "rmdir"))

Places = Callable[[Word], Iterable[Place | None]]


def implied_accesses(
    segment: Segment, part: int, places: Places, policy: Policy, lookup: Lookup
) -> Iterator[FileAccess]:
    """The file accesses that one command of a line implies. `places` resolves its words."""
    if segment.name in SHALLOW or not segment.writes:
        return
    written, read = known_places(segment.writes, places), known_places(segment.reads, places)
    if segment.name not in COPIERS:
        for place in written:
            yield from accesses_inside(place, FileEffect.WRITE, part, policy, lookup)
        return
    for place in read:
        moved = any(effect.removes and effect.does is Does.READS for effect in segment.effects)
        effect = FileEffect.WRITE if moved else FileEffect.READ
        yield from accesses_inside(place, effect, part, policy, lookup)
    for target in written:
        for source in (*read, *written):
            if source is not target:  # `cp -t target source` writes both, as far as its words tell
                yield from landing(source, target, part, policy, lookup)


def known_places(words: Iterable[Word], places: Places) -> list[Place]:
    return [place for word in words for place in places(word) if place is not None]


def accesses_inside(
    folder: Place, effect: FileEffect, part: int, policy: Policy, lookup: Lookup
) -> Iterator[FileAccess]:
    """The files in a folder that deny or ask rules match."""
    indexes = [policy.index[kind] for kind in OBJECTING]
    if folder.kind is not FileKind.FOLDER or all(index.read.empty and index.edit.empty for index in indexes):
        return
    for name in list_folder(folder, lookup):
        file = access_in(folder, name, effect, part, policy)
        if name is None or has_objection(file, policy):
            yield file


def landing(source: Place, target: Place, part: int, policy: Policy, lookup: Lookup) -> Iterator[FileAccess]:
    """The files written when source is put into target; an existing link there may lead elsewhere."""
    name = posixpath.basename(source.spelling.rstrip("/"))
    there = target
    if target.kind is FileKind.FOLDER and name not in ("", ".", ".."):
        there = lookup.locate(posixpath.join(target.real, name), "/")
        yield assess_place(policy, there, FileEffect.WRITE, there.absolute, part)
    if source.kind is not FileKind.FOLDER:
        return
    for inner in list_folder(source, lookup):
        file = access_in(there, inner, FileEffect.WRITE, part, policy)
        if file.place is not None and lookup.exists(file.place.real, "/"):
            file = assess_place(policy, lookup.locate(file.place.real, "/"), FileEffect.WRITE, file.shown, part)
            if file.doubt:
                yield file
        if inner is None or file.protected or has_objection(file, policy):
            yield file


def list_folder(folder: Place, lookup: Lookup) -> Iterable[str | None]:
    """The paths in a folder; a single None if there are too many."""
    found = lookup.beneath(folder.real, True)
    return (None,) if found is None else found.paths


def access_in(folder: Place, name: str | None, effect: FileEffect, part: int, policy: Policy) -> FileAccess:
    if name is None:
        return FileAccess(None, effect, folder.spelling, part, doubt=f"{folder.spelling!r} holds too much to look at")
    path = posixpath.join(folder.real, name)
    return assess_place(policy, Place(path, path, path), effect, path, part)


def has_objection(file: FileAccess, policy: Policy) -> bool:
    """Whether a deny or ask rule matches: a file that may not be read may not be written either."""
    for kind in OBJECTING:
        index = policy.index[kind]
        if any(index.read.find(path) for path in file.paths):
            return True
        if file.effect not in READING and any(index.edit.find(path) for path in file.paths):
            return True
    return False
