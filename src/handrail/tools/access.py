"""
What a call touches, and when two calls may not overlap.

Everything touchable is one tree: the root is the whole world, an absolute path lies below it, and so does any other
named resource. `shared` reads the root, `exclusive` writes it, so one rule covers all: two calls conflict
when one writes a place and the other touches the same place, one above it or one below it.
"""

from collections.abc import Iterable
from typing import TypeAlias

from handrail.records import record

Place: TypeAlias = tuple[str, ...]

WORLD: Place = ()


def place(resource: str) -> Place:
    """Where a resource lies in the tree: `/a/b` below `/a`, any other name directly below the root."""
    if not resource.startswith("/"):
        return (resource,)
    parts: list[str] = ["/"]
    for part in resource.split("/"):
        if part == "..":
            del parts[max(1, len(parts) - 1) :]
        elif part not in {"", "."}:
            parts.append(part)
    return tuple(parts)


@record
class Access:
    """The places a call reads and writes."""

    reads: frozenset[Place] = frozenset()
    writes: frozenset[Place] = frozenset()

    @classmethod
    def shared(cls) -> "Access":
        """Reads anything, changes nothing."""
        return SHARED

    @classmethod
    def exclusive(cls) -> "Access":
        """May touch anything: nothing else runs beside it."""
        return EXCLUSIVE

    @classmethod
    def of(cls, reads: Iterable[str] = (), writes: Iterable[str] = ()) -> "Access":
        """Named resources, for example absolute real paths. A folder covers what lies below it."""
        return cls(frozenset(map(place, reads)), frozenset(map(place, writes)))

    def covers(self, other: "Access") -> bool:
        """Whether holding this access is enough to do what needs the other."""
        return all(_within(p, self.writes) for p in other.writes) and all(
            _within(p, self.writes) or _within(p, self.reads) for p in other.reads
        )


SHARED = Access(reads=frozenset({WORLD}))
EXCLUSIVE = Access(writes=frozenset({WORLD}))


def conflict(one: Access, other: Access) -> bool:
    """Whether the order of these two can be seen: one writes what the other touches."""
    if one is SHARED and other is SHARED:
        return False
    return _overlap(one.writes, other.writes) or _overlap(one.writes, other.reads) or _overlap(one.reads, other.writes)


def _overlap(some: frozenset[Place], others: frozenset[Place]) -> bool:
    return any(_nested(a, b) for a in some for b in others)


def _nested(a: Place, b: Place) -> bool:
    return a[: len(b)] == b or b[: len(a)] == a


def _within(inner: Place, outer: frozenset[Place]) -> bool:
    return any(inner[: len(p)] == p for p in outer)
