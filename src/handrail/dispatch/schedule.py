"""
When a call may start.

    a call may start when no earlier unfinished call conflicts with it

The rule is answered without looking at every earlier call. Each place of the access tree remembers who last wrote it
and, in groups, who reads it and who reads or writes below it. A new call waits for those groups. A group that is waited
for takes no more members: the next one joins a new group, and since the waiters stand between the two, waiting for the
newest group is always enough. So a call costs what the depth of its paths costs, however many calls wait.
"""

import heapq
from collections.abc import Container, Iterator

from handrail.tools.access import Access, Place


class Group:
    """Unfinished calls that others wait for together."""

    __slots__ = ("members", "waiters")

    def __init__(self) -> None:
        self.members = 0
        self.waiters: list[Node] = []


class Node:
    """One call in the schedule: what it touches, how many groups it waits for, and which groups it is in."""

    __slots__ = ("access", "groups", "held", "key", "pending", "started")

    def __init__(self, key: int, access: Access, *, held: bool, started: bool) -> None:
        self.key = key
        self.access = access
        self.held = held
        self.started = started
        self.pending = 0
        self.groups: list[Group] = []

    def wait_for(self, group: Group | None) -> None:
        if group is not None and group.members and not (group.waiters and group.waiters[-1] is self):
            group.waiters.append(self)
            self.pending += 1

    def join(self, group: Group | None) -> Group:
        """Become a member of the group, or of a new one if that group is waited for."""
        if group is None or group.waiters:
            group = Group()
        group.members += 1
        self.groups.append(group)
        return group


class Spot:
    """What is going on at one place and below it."""

    __slots__ = ("lower_readers", "lower_writers", "readers", "writers")

    def __init__(self) -> None:
        self.writers: Group | None = None
        self.readers: Group | None = None
        self.lower_writers: Group | None = None
        self.lower_readers: Group | None = None


class Schedule:
    """The unfinished calls in the order they were asked for."""

    def __init__(self, *, holding: bool) -> None:
        self._nodes: dict[int, Node] = {}
        self._holding = holding
        self._clear()

    def add(self, key: int, access: Access, *, held: bool = False) -> None:
        """The next call in order. A held one does not start before `release`."""
        self._place(Node(key, access, held=held, started=False))

    def release(self) -> None:
        """Held calls wait for nothing but conflicts now."""
        self._holding = False
        self._leave(self._gate)

    def next_ready(self) -> int | None:
        """The earliest call that may start now; the caller starts it, or gives it back."""
        if not self._ready:
            return None
        key = heapq.heappop(self._ready)
        self._nodes[key].started = True
        return key

    def give_back(self, key: int) -> None:
        """The call could not be started for lack of room."""
        self._nodes[key].started = False
        heapq.heappush(self._ready, key)

    def finish(self, key: int) -> None:
        """A call is over; those that waited only for it become ready."""
        node = self._nodes.pop(key)
        if node.started:
            self._leave(node)
        else:
            # whoever stands behind it was promised that it stands behind what it waits for
            self._rebuild(list(self._nodes.values()))

    def drop(self, keys: Container[int]) -> None:
        """Forget calls that never started, as if they had not been asked for."""
        self._rebuild([node for node in self._nodes.values() if node.started or node.key not in keys])

    def widen(self, key: int, access: Access, *, held: bool) -> None:
        """A started call turns out to touch more: it waits again, and what waits behind it sees that."""
        node = self._nodes[key]
        node.access, node.held, node.started = access, held, False
        self._rebuild(list(self._nodes.values()))

    def _clear(self) -> None:
        self._spots: dict[Place, Spot] = {}
        self._ready: list[int] = []
        self._gate = Node(-1, Access(), held=False, started=True)
        self._gate_group = self._gate.join(None) if self._holding else None

    def _rebuild(self, nodes: list[Node]) -> None:
        self._nodes = {}
        self._clear()
        for old in nodes:
            self._place(Node(old.key, old.access, held=old.held, started=old.started))

    def _place(self, node: Node) -> None:
        self._nodes[node.key] = node
        if not node.started:
            self._wait(node)
        self._join(node)
        if not node.started and not node.pending:
            heapq.heappush(self._ready, node.key)

    def _wait(self, node: Node) -> None:
        if node.held:
            node.wait_for(self._gate_group)
        for place in node.access.writes:
            for above in self._above(place):
                node.wait_for(above.writers)
                node.wait_for(above.readers)
            spot = self._spot(place)
            node.wait_for(spot.writers)
            node.wait_for(spot.readers)
            node.wait_for(spot.lower_writers)
            node.wait_for(spot.lower_readers)
        for place in node.access.reads:
            for above in self._above(place):
                node.wait_for(above.writers)
            spot = self._spot(place)
            node.wait_for(spot.writers)
            node.wait_for(spot.lower_writers)

    def _join(self, node: Node) -> None:
        """After all waiting is noted, so that a call never waits for itself."""
        for place in node.access.writes:
            for above in self._above(place):
                above.lower_writers = node.join(above.lower_writers)
            spot = self._spot(place)
            spot.writers = node.join(spot.writers)
        for place in node.access.reads:
            for above in self._above(place):
                above.lower_readers = node.join(above.lower_readers)
            spot = self._spot(place)
            spot.readers = node.join(spot.readers)

    def _leave(self, node: Node) -> None:
        for group in node.groups:
            group.members -= 1
            if group.members:
                continue
            for waiter in group.waiters:
                waiter.pending -= 1
                if not waiter.pending:
                    heapq.heappush(self._ready, waiter.key)
        node.groups.clear()

    def _above(self, place: Place) -> Iterator[Spot]:
        return (self._spot(place[:depth]) for depth in range(len(place)))

    def _spot(self, place: Place) -> Spot:
        spot = self._spots.get(place)
        if spot is None:
            spot = self._spots[place] = Spot()
        return spot
