"""
Files that a command changes without naming them: `rm -r src` removes what is in src, `cp a.txt src` writes src/a.txt.

Only files that matter are listed: those that a deny or ask rule matches and, where files are put, protected ones.
Removing a protected file together with its folder changes nothing that runs later.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from handrail.files.paths import FileKind, Place
from handrail.permissions.file_access import OBJECTING, READING, FileAccess, FileEffect, Lookup, assess_place
from handrail.permissions.policy import Policy
from handrail.shell.model import Does, Segment, Word

# Their last word is the target of the others; any other command that writes a folder may write what is in it.
COPIERS = frozenset(("cp", "mv", "ln", "install", "rsync", "scp"))
SHALLOW = frozenset(("mkdir", "touch", "rmdir"))
REPOSITORY = frozenset(("HEAD", "config"))
"""What lies in a folder that git takes for a repository, whatever its name, and runs programs of."""
MAX_SUFFIXES = 4  # the last one counts, and what stands behind it may be one
# The option whose value is added to the name of a file to keep what was in it.
BACKUPS = {"sed": ("i", "--in-place"), **dict.fromkeys(("cp", "mv", "ln", "install", "rsync"), ("S", "--suffix"))}

Places = Callable[[Word], Iterable[Place | None]]


def implied_accesses(
    segment: Segment, part: int, places: Places, policy: Policy, lookup: Lookup, *, alone: bool = True
) -> Iterator[FileAccess]:
    """
    The file accesses that one command of a line implies. `places` resolves its words.

    If it is not alone, what is missing may be a folder by the time that it runs: `mkdir new && cp a.txt new`.
    """
    if segment.name in SHALLOW or not segment.writes:
        return
    written, read = known_places(segment.writes, places), known_places(segment.reads, places)
    for path in backups(segment, written, read):
        yield assess_place(policy, lookup.locate(path, "/"), FileEffect.WRITE, path, part)
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
            if source is target:  # `cp -t target source` writes both, as far as its words tell
                continue
            yield from landing(source, target, part, policy, lookup)
            if target.kind is FileKind.MISSING and not alone:
                made = replace(target, kind=FileKind.FOLDER)
                files = landing(source, made, part, policy, lookup)
                yield from (file for file in files if file.protected or has_objection(file, policy))


def known_places(words: Iterable[Word], places: Places) -> list[Place]:
    return [place for word in words for place in places(word) if place is not None]


def backups(segment: Segment, written: list[Place], read: list[Place]) -> Iterator[str]:
    """The paths to which the old contents of files go: `sed -i.bak x` writes x.bak."""
    option = BACKUPS.get(segment.name)
    found = suffixes_in([str(word) for word in segment.argv[1:]], *option) if option else ()
    suffixes = list(dict.fromkeys(reversed(list(found))))[:MAX_SUFFIXES]
    inside = [posixpath.join(folder.absolute, posixpath.basename(each.absolute)) for folder in written for each in read]
    for path in dict.fromkeys((*(place.absolute for place in written), *inside)) if suffixes else ():
        folder, name = posixpath.split(path)
        for suffix in suffixes:  # sed puts the name in place of a star
            yield posixpath.join(folder, suffix.replace("*", name) if "*" in suffix else name + suffix)


def suffixes_in(words: list[str], letter: str, name: str) -> Iterator[str]:
    """The values of an option, also in a cluster and abbreviated; the next word may be one if it is a plain name."""
    for at, word in enumerate(words):
        behind = [each for each in words[at + 1 : at + 2] if "/" not in each]
        head, equals, value = word.partition("=")
        if equals and head.startswith(name[:3]) and name.startswith(head):
            yield value
        elif word.startswith("-") and not word.startswith("--") and letter in word:
            yield from filter(None, (word.partition(letter)[2], *behind))
        elif word.startswith(name[:3]) and name.startswith(word):
            yield from behind


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
    names = list_folder(source, lookup)
    if REPOSITORY.issubset(names):
        file = assess_place(policy, there, FileEffect.WRITE, there.absolute, part)
        yield file._replace(protected=file.protected or "a git repository")
    for inner in names:
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
