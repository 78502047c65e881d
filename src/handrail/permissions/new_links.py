"""
Links that a command line makes, moves or copies, and that its other commands go through: `ln -s .git x; cp a x/config`.

Before the line runs, such a link is not there yet, or is in another folder, from which it leads elsewhere.
"""

import posixpath
from collections.abc import Callable, Iterator

from handrail.files.paths import FileKind, Place
from handrail.named_tuples import NamedTuple
from handrail.permissions.file_access import Lookup
from handrail.permissions.paths import below
from handrail.shell.model import Analysis, Segment, Word, literal_word

LINKERS = frozenset(("ln", "link"))
# A folder that they put elsewhere keeps its links; without an option, cp follows those that it is given.
MOVERS = frozenset(("mv", "cp", "rsync", "git mv"))
MAX_LINKS = 100
MAX_SOURCES = 50
MAX_STEPS = 200

Places = Callable[[Segment, Word], Iterator[Place | None]]


class NewLink(NamedTuple):
    """A link that will be there when the line runs. `target` None: where it leads is not known."""

    segment: Segment
    path: str
    target: str | None


def new_links(analysis: Analysis, places: Places, lookup: Lookup) -> tuple[NewLink, ...]:
    """The links that the commands of a line put somewhere, as far as their words are known."""
    found: list[NewLink] = []
    for segment in analysis.segments if len(analysis.segments) > 1 else ():
        if segment.entry in LINKERS or segment.entry in MOVERS:
            for link in links_of(segment, places, lookup):
                if len(found) == MAX_LINKS:
                    return (*found, NewLink(segment, "/", None))
                found.append(link)
    return tuple(found)


def links_of(segment: Segment, places: Places, lookup: Lookup) -> Iterator[NewLink]:
    words = (*segment.reads, *segment.writes)
    named = [place for word in words for place in places(segment, word) if place is not None]
    targets = [place for word in segment.writes for place in places(segment, word) if place is not None]
    if len(words) == 1:  # `ln -s a/b` makes the link here
        targets = [place for place in places(segment, literal_word(".")) if place is not None]
    if len(named) > MAX_SOURCES:
        yield NewLink(segment, "/", None)
        return
    for source in named:
        moved = () if segment.entry in LINKERS else tuple(links_in(source, lookup))
        for path in (path for target in targets if target != source for path in new_paths(source, target)):
            ends = link_ends(source, path) if segment.entry in LINKERS else moved_ends(path, moved)
            for link, end in ends:
                yield from (NewLink(segment, spelled, end) for spelled in {link, lookup.locate(link, "/").real})


def new_paths(source: Place, target: Place) -> Iterator[str]:
    """Where a source is afterwards: in a folder, or in place of what is no folder, or only a link to one."""
    yield posixpath.join(target.absolute, posixpath.basename(source.absolute))
    if target.kind is not FileKind.FOLDER or target.real != target.absolute:
        yield target.absolute


def link_ends(source: Place, path: str) -> Iterator[tuple[str, str | None]]:
    """A link to a source, which is seen from here (a hard link) or from the folder of the link."""
    yield path, source.absolute
    yield path, posixpath.join(posixpath.dirname(path), source.spelling)


def links_in(source: Place, lookup: Lookup) -> Iterator[tuple[str, str | None]]:
    """The links in a source, itself included, with their texts; None if there is too much to look at."""
    if text := lookup.read_link(source.absolute):
        yield "", text
    if source.kind is not FileKind.FOLDER:
        return
    contents = lookup.beneath(source.real, True)
    if contents is None:
        yield "", None
        return
    for link in contents.links:
        yield link, lookup.read_link(posixpath.join(source.real, link))


def moved_ends(path: str, links: tuple[tuple[str, str | None], ...]) -> Iterator[tuple[str, str | None]]:
    """Where links lead from a new folder; not those that stay inside of what is moved."""
    for link, text in links:
        there = posixpath.join(path, link) if link else path
        end = None if text is None else posixpath.join(posixpath.dirname(there), text)
        if end is None or not link or not below(posixpath.normpath(end), path):
            yield there, end


def follow_links(place: Place, segment: Segment, links: tuple[NewLink, ...], lookup: Lookup) -> Iterator[Place | None]:
    """Where a place is in truth for a command, if others of its line made the links on the way to it."""
    seen = {place.absolute, place.real}
    left = list(seen)
    while left and len(seen) < MAX_STEPS:
        path = left.pop()
        for link in links:
            if link.segment is segment or not below(path, link.path):
                continue
            if link.target is None:
                yield None
                continue
            found = lookup.locate(link.target + path[len(link.path) :], "/")
            new = {found.absolute, found.real} - seen
            if new:
                yield found
            seen |= new
            left += new
    if left:
        yield None
