"""
When a call may start.

    a call may start when no earlier unfinished call conflicts with it, and there is room

The rule is answered without looking at every earlier call. Each place of the access tree remembers who last wrote it
and, in groups, who reads it and who reads or writes below it. A new call waits for those groups. A group that is waited
for takes no more members: the next one joins a new group, and since the waiters stand between the two, waiting for the
newest group is always enough. So a call costs what the depth of its paths costs, however many calls wait.

Calls that only read never wait for each other, and a single call waits for none. So the tree is made when a call comes
that writes, or comes after one that does; before that, calls are only counted.

Calls whose footprint names a group (sub-agents) hold the whole world against all others, and share it with each other.
"""

import heapq
from collections.abc import Container, Iterable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from handrail.dispatch.footprint import Footprint, Place
from handrail.errors import HandrailError
from handrail.records import record

EarlyStart: TypeAlias = Literal["permitted", "safe", "off", "all"]
SiblingErrors: TypeAlias = Literal["shell-chain", "isolate", "all"]


@record
class Scheduling:
    """
    How calls of one answer may overlap.

    early_start: `permitted` = every call that no one has to be asked about starts while the answer is still arriving
        (`all` is its old name), `safe` = only read-only calls do, `off` = the batch path: nothing starts before the
        answer is whole, and then in runs of calls that only read and single other ones.
    max_parallel, max_parallel_by_tool: how many calls run at a time, of all tools and of the named ones.
    sibling_errors: what a failed shell call does to the others of its answer. `shell-chain` cancels later calls
        that are not read-only, `isolate` none, `all` every unfinished one.
    all_read_only: batch path only; calls run side by side only if all calls of the answer are read-only.
    """

    early_start: EarlyStart = "permitted"
    max_parallel: int = 10
    max_parallel_by_tool: Mapping[str, int] = field(default_factory=dict)
    sibling_errors: SiblingErrors = "shell-chain"
    all_read_only: bool = False

    @property
    def holds_changes(self) -> bool:
        """Whether calls that change something wait until the answer is whole."""
        return self.early_start in ("safe", "off")

    def __post_init__(self) -> None:
        for what, cap in (("all tools", self.max_parallel), *self.max_parallel_by_tool.items()):
            if cap < 1:
                raise HandrailError(f"{cap!r} calls of {what} at a time means that none ever runs. Give 1 or more.")


class WaitGroup:
    """Unfinished calls that others wait for as a group."""

    __slots__ = ("members", "waiters")

    def __init__(self) -> None:
        self.members = 0
        self.waiters: list[ScheduledCall] = []


class ScheduledCall:
    """One call in the schedule: its footprint, how many groups it waits for, and which groups it is in."""

    __slots__ = ("footprint", "groups", "held", "key", "lane", "pending", "started")

    def __init__(self, key: int, footprint: Footprint, lane: str, *, held: bool, started: bool = False) -> None:
        self.key = key
        self.footprint = footprint
        self.lane = lane
        self.held = held
        self.started = started
        self.pending = 0
        self.groups: list[WaitGroup] = []

    def wait_for(self, *groups: WaitGroup | None) -> None:
        for group in groups:
            if group is not None and group.members and not (group.waiters and group.waiters[-1] is self):
                group.waiters.append(self)
                self.pending += 1

    def join(self, group: WaitGroup | None) -> WaitGroup:
        """Become a member of the group, or of a new one if that group is waited for."""
        if group is None or group.waiters:
            group = WaitGroup()
        group.members += 1
        self.groups.append(group)
        return group


class PlaceUse:
    """The unfinished calls that use a place or places below it."""

    __slots__ = ("lower_readers", "lower_writers", "readers", "writers")

    def __init__(self) -> None:
        self.writers: WaitGroup | None = None
        self.readers: WaitGroup | None = None
        self.lower_writers: WaitGroup | None = None
        self.lower_readers: WaitGroup | None = None


Spots: TypeAlias = list[PlaceUse]


class Schedule:
    """The unfinished calls in the order they were asked for. `lane` is what the caps by tool are counted by."""

    def __init__(self, cap: int, caps: Mapping[str, int], *, holding: bool) -> None:
        self._cap = cap
        self._caps = caps
        self.holding = holding
        """Whether held calls are still kept back."""
        self._clear()

    def add(self, key: int, footprint: Footprint, lane: str = "", *, held: bool = False) -> None:
        """The next call in order. A held one does not start before `release`."""
        self._place(ScheduledCall(key, footprint, lane, held=held))

    def release(self) -> None:
        """From now on held calls wait only for conflicts and capacity."""
        if self.holding:
            self.holding = False
            self._gate.members = 0
            self._wake(self._gate)

    def start_next(self) -> int | None:
        """The earliest call that may start; it counts as running from now on. None = nothing may start now."""
        while self._ready and self._running < self._cap:
            node = self._nodes[heapq.heappop(self._ready)]
            if node.lane in self._caps and self._running_in[node.lane] >= self._caps[node.lane]:
                heapq.heappush(self._full.setdefault(node.lane, []), node.key)
                continue
            node.started = True
            self._running += 1
            if node.lane in self._running_in:
                self._running_in[node.lane] += 1
            return node.key
        return None

    def finish(self, key: int) -> None:
        """A call is over; those that waited only for it may start."""
        node = self._nodes.pop(key)
        if not node.started:
            # calls after it rely on waiting for what it waited for
            self._rebuild(self._nodes.values())
            return
        self._running -= 1
        if node.lane in self._caps:
            self._running_in[node.lane] -= 1
            if full := self._full.get(node.lane):
                heapq.heappush(self._ready, heapq.heappop(full))
        if self._nodes:
            self._leave(node)
        else:
            self._clear_tree()

    def drop(self, keys: Container[int]) -> None:
        """Forget calls that never started, as if they had not been asked for."""
        self._rebuild(node for node in self._nodes.values() if node.started or node.key not in keys)

    def widen(self, key: int, footprint: Footprint, *, held: bool) -> None:
        """A started call accesses more than it declared: it waits again, and later calls wait for it."""
        node = self._nodes[key]
        node.footprint, node.held, node.started = footprint, held, False
        self._rebuild(self._nodes.values())

    def _clear(self) -> None:
        self._nodes: dict[int, ScheduledCall] = {}
        self._clear_tree()
        self._ready: list[int] = []
        self._full: dict[str, list[int]] = {}
        self._running = 0
        self._running_in = dict.fromkeys(self._caps, 0) if self._caps else {}
        self._gate = WaitGroup()  # the end of the answer, which held calls wait for
        self._gate.members = int(self.holding)

    def _clear_tree(self) -> None:
        self._has_tree = False
        self._has_writer = False
        """Whether an unfinished call writes; only asked as long as there is no tree."""
        self._spots: dict[Place, Spots] = {}
        self._grouped: dict[str, PlaceUse] = {}

    def _rebuild(self, nodes: Iterable[ScheduledCall]) -> None:
        old = list(nodes)
        self._clear()
        for node in old:
            self._place(ScheduledCall(node.key, node.footprint, node.lane, held=node.held, started=node.started))

    def _place(self, node: ScheduledCall) -> None:
        """Add a node behind the others."""
        writes = bool(node.footprint.writes)
        if not self._has_tree and self._nodes and (writes or self._has_writer):
            self._make_tree()
        self._has_writer = self._has_writer or writes
        self._nodes[node.key] = node
        if self._has_tree:
            self._place_in_tree(node)
        if node.started:
            self._running += 1
            if node.lane in self._running_in:
                self._running_in[node.lane] += 1
            return
        if node.held:
            node.wait_for(self._gate)
        if not node.pending:
            heapq.heappush(self._ready, node.key)

    def _make_tree(self) -> None:
        """Put the nodes so far into the tree; none of them waits for another."""
        self._has_tree = True
        for node in self._nodes.values():
            self._join(node, *self._all_spots(node.footprint))

    def _place_in_tree(self, node: ScheduledCall) -> None:
        writes, reads = self._all_spots(node.footprint)
        if not node.started:
            self._wait(node, writes, reads)
        self._join(node, writes, reads)

    def _wait(self, node: ScheduledCall, writes: list[Spots], reads: list[Spots]) -> None:
        for name, use in self._grouped.items():
            if name != node.footprint.group:
                node.wait_for(use.writers)
                node.wait_for(use.readers if node.footprint.writes else None)
        for *above, spot in writes:
            for higher in above:
                if higher.writers is not None or higher.readers is not None:
                    node.wait_for(higher.writers, higher.readers)
            node.wait_for(spot.writers, spot.readers, spot.lower_writers, spot.lower_readers)
        for *above, spot in reads:
            for higher in above:
                if higher.writers is not None:
                    node.wait_for(higher.writers)
            node.wait_for(spot.writers, spot.lower_writers)

    def _join(self, node: ScheduledCall, writes: list[Spots], reads: list[Spots]) -> None:
        """Called after `_wait`, so that a call never waits for itself."""
        if group := node.footprint.group:
            use = self._grouped.setdefault(group, PlaceUse())
            if node.footprint.writes:
                use.writers = node.join(use.writers)
            else:
                use.readers = node.join(use.readers)
            return
        for *above, spot in writes:
            for higher in above:
                higher.lower_writers = node.join(higher.lower_writers)
            spot.writers = node.join(spot.writers)
        for *above, spot in reads:
            for higher in above:
                higher.lower_readers = node.join(higher.lower_readers)
            spot.readers = node.join(spot.readers)

    def _leave(self, node: ScheduledCall) -> None:
        for group in node.groups:
            group.members -= 1
            if not group.members:
                self._wake(group)

    def _wake(self, group: WaitGroup) -> None:
        """The group is empty: its waiters may start."""
        for waiter in group.waiters:
            waiter.pending -= 1
            if not waiter.pending:
                heapq.heappush(self._ready, waiter.key)
        group.waiters.clear()

    def _all_spots(self, footprint: Footprint) -> tuple[list[Spots], list[Spots]]:
        """The spots that are written, and those that are read."""
        writes = [self._spots_of(place) for place in footprint.writes]
        reads = [self._spots_of(place) for place in footprint.reads]
        return writes, reads

    def _spots_of(self, place: Place) -> Spots:
        """The spot of a place, behind those of all places above it."""
        spots = self._spots.get(place)
        if spots is None:
            spots = []
            for depth in range(len(place) + 1):
                spots = self._spots.get(place[:depth]) or [*spots, PlaceUse()]
                self._spots[place[:depth]] = spots
        return spots
