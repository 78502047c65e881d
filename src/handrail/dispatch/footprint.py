"""
The places that a call holds while it runs, and when two calls may not overlap.

All places form one tree: the root is the whole world, absolute paths and named records are below it. A shared call
reads the root, an exclusive one writes it, so one rule covers all: two calls conflict when one writes a place and the
other accesses the same place, one above it or one below it.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from handrail.records import record
from handrail.tools.access import Access

Place: TypeAlias = tuple[str, ...]

WORLD: Place = ()
NO_PLACES: frozenset[Place] = frozenset()
SPECIAL_NAMES = frozenset({"", ".", ".."})
MAX_DEPTH = 250
"""A path with more parts could be anywhere: it stands for the whole world."""


@record
class Footprint:
    """The places that a call reads and writes."""

    reads: frozenset[Place] = NO_PLACES
    writes: frozenset[Place] = NO_PLACES
    group: str = ""
    """Calls of one group do not conflict with each other."""

    def covers(self, other: "Footprint") -> bool:
        """Whether holding this footprint is enough to do what needs the other."""
        return all(_within(p, self.writes) for p in other.writes) and all(
            _within(p, self.writes) or _within(p, self.reads) for p in other.reads
        )


READS_WORLD = Footprint(reads=frozenset({WORLD}))
WRITES_WORLD = Footprint(writes=frozenset({WORLD}))
NOTHING = Footprint(reads=frozenset({("nothing",)}))
"""A place that no call writes, below the root like all others."""


def footprint(access: Access, cwd: Path, known: dict[str, Place] | None = None) -> Footprint:
    """
    The places of an access, relative to a folder, with every link followed.

    `known` caches resolved paths for as long as no call can have changed them.
    """
    if access.width == "shared":
        return replace(READS_WORLD, group=access.group) if access.group else READS_WORLD
    if access.width == "exclusive":
        return replace(WRITES_WORLD, group=access.group) if access.group else WRITES_WORLD
    if access.own:
        return _make_footprint(frozenset(zip(access.reads)), frozenset(zip(access.writes)))
    if not known:
        known = {} if known is None else known
        _add_working_folder(cwd, known)
    reads, writes = access.reads + access.walks, access.writes + access.removes
    return _make_footprint(
        frozenset([_place(cwd, path, known) for path in reads]) if reads else NO_PLACES,
        frozenset([_place(cwd, path, known) for path in writes]) if writes else NO_PLACES,
    )


def _make_footprint(reads: frozenset[Place], writes: frozenset[Place]) -> Footprint:
    return Footprint(reads, writes) if reads or writes else NOTHING


def _add_working_folder(cwd: Path, known: dict[str, Place]) -> None:
    """The system knows the folder of the process by its real path, so that no part of it need be looked at."""
    try:
        real = os.getcwd()  # noqa: PTH109
    except OSError:  # it was removed
        return
    if real == str(cwd):
        known[real] = _parts(real)


def _place(cwd: Path, path: str, known: dict[str, Place]) -> Place:
    if path.startswith("~"):
        path = os.path.expanduser(path)  # noqa: PTH111  # a spelling, which may not be a path at all
    if not path.startswith("/"):
        path = f"{cwd}/{path}"
    return known.get(path) or (WORLD if path.count("/") > MAX_DEPTH else _follow(path, known))


def _follow(path: str, known: dict[str, Place]) -> Place:
    """Resolve a path. Its folder is resolved once for all files in it."""
    folder, _, name = path.rpartition("/")
    if name in SPECIAL_NAMES or os.path.islink(path):  # noqa: PTH114
        try:
            place = _parts(os.path.realpath(path))
        except (OSError, ValueError):
            place = _parts(os.path.abspath(path))  # noqa: PTH100
    else:
        place = (*(known.get(folder) or _follow(folder, known)), name) if folder else ("/", name)
    known[path] = place
    return place


def _parts(path: str) -> Place:
    return ("/", *[part for part in path.split("/") if part])


def conflict(one: Footprint, other: Footprint) -> bool:
    """Whether the order of two calls matters: one writes what the other accesses."""
    if (one is READS_WORLD and other is READS_WORLD) or (one.group and one.group == other.group):
        return False
    return _overlap(one.writes, other.writes) or _overlap(one.writes, other.reads) or _overlap(one.reads, other.writes)


def _overlap(some: frozenset[Place], others: frozenset[Place]) -> bool:
    return any(_is_nested(a, b) for a in some for b in others)


def _is_nested(a: Place, b: Place) -> bool:
    return a[: len(b)] == b or b[: len(a)] == a


def _within(inner: Place, outer: frozenset[Place]) -> bool:
    return any(inner[: len(p)] == p for p in outer)
