"""
The places that a call holds while it runs, and when two calls may not overlap.

Everything touchable is one tree: the root is the whole world, an absolute path lies below it, and so does any other
named record. A shared call reads the root, an exclusive one writes it, so one rule covers all: two calls conflict
when one writes a place and the other touches the same place, one above it or one below it.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from handrail.records import record
from handrail.tools.access import Access

Place: TypeAlias = tuple[str, ...]

WORLD: Place = ()


@record
class Footprint:
    """The places that a call reads and writes."""

    reads: frozenset[Place] = frozenset()
    writes: frozenset[Place] = frozenset()

    def covers(self, other: "Footprint") -> bool:
        """Whether holding this footprint is enough to do what needs the other."""
        return all(_within(p, self.writes) for p in other.writes) and all(
            _within(p, self.writes) or _within(p, self.reads) for p in other.reads
        )


READS_WORLD = Footprint(reads=frozenset({WORLD}))
WRITES_WORLD = Footprint(writes=frozenset({WORLD}))
NOTHING = Footprint(reads=frozenset({("nothing",)}))
"""A place that no call writes, but that lies in the world like all others."""


def footprint(access: Access, cwd: Path) -> Footprint:
    """The places of an access as seen from a folder, with every link followed."""
    if access.width == "shared":
        return READS_WORLD
    if access.width == "exclusive":
        return WRITES_WORLD
    if access.own:
        reads, writes = frozenset[Place](zip(access.reads)), frozenset[Place](zip(access.writes))
    else:
        folder = os.fspath(cwd)
        reads = _places(folder, access.reads + access.walks) if access.reads or access.walks else frozenset()
        writes = _places(folder, access.writes + access.removes) if access.writes or access.removes else frozenset()
    return Footprint(reads, writes) if reads or writes else NOTHING


def _places(cwd: str, paths: Iterable[str]) -> frozenset[Place]:
    return frozenset([_place(cwd, path) for path in paths])


def _place(cwd: str, path: str) -> Place:
    if path.startswith("~"):
        path = os.path.expanduser(path)  # noqa: PTH111  # a spelling, which may not be a path at all
    joined = os.path.join(cwd, path)  # noqa: PTH118
    try:
        real = os.path.realpath(joined)
    except (OSError, ValueError):
        real = os.path.abspath(joined)  # noqa: PTH100
    return ("/", *[part for part in real.split("/") if part])


def conflict(one: Footprint, other: Footprint) -> bool:
    """Whether the order of these two can be seen: one writes what the other touches."""
    if one is READS_WORLD and other is READS_WORLD:
        return False
    return _overlap(one.writes, other.writes) or _overlap(one.writes, other.reads) or _overlap(one.reads, other.writes)


def _overlap(some: frozenset[Place], others: frozenset[Place]) -> bool:
    return any(_nested(a, b) for a in some for b in others)


def _nested(a: Place, b: Place) -> bool:
    return a[: len(b)] == b or b[: len(a)] == a


def _within(inner: Place, outer: frozenset[Place]) -> bool:
    return any(inner[: len(p)] == p for p in outer)
