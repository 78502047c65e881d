"""The calls of an answer that have not started yet, and which of them is next."""

from collections import deque
from collections.abc import Collection, Iterable

from handrail.dispatch.call_state import Call
from handrail.dispatch.footprint import READS_WORLD, WRITES_WORLD, Footprint, Place, footprint
from handrail.dispatch.schedule import Schedule, Scheduling
from handrail.tools.access import EXCLUSIVE
from handrail.tools.context import RunContext
from handrail.tools.flags import declaration


class CallQueue:
    """
    Puts calls into the schedule as soon as it is known what they access.

    That can depend on the calls before them (a changed working folder, a new link), and only a call that runs alone
    can change it. So the calls after one that runs alone are scheduled when that one is over, but for calls of its own
    group: these run beside each other, and change nothing for later calls of the answer.
    """

    def __init__(self, scheduling: Scheduling) -> None:
        self._batch = scheduling.early_start == "off"
        self._all_must_read = scheduling.all_read_only
        self._all_read = True
        self._waiting: deque[Call] = deque()
        self._placed: dict[int, Call] = {}
        self._barriers: dict[int, Call] = {}
        self._known: dict[str, Place] = {}
        self._schedule = Schedule(
            scheduling.max_parallel, scheduling.max_parallel_by_tool, holding=scheduling.holds_changes
        )

    @property
    def holding(self) -> bool:
        """Whether changing calls are held back until the answer is complete."""
        return self._schedule.holding

    def add(self, call: Call) -> None:
        """The next call in order."""
        self._waiting.append(call)
        self._all_read = self._all_read and call.read_only

    def release(self) -> None:
        """The answer is complete."""
        self._schedule.release()

    def start_next(self, run: RunContext) -> Call | None:
        """The earliest call that may start; it counts as running until `finish`."""
        waiting = self._waiting
        while waiting and not (self._batch and self.holding) and (not self._barriers or self._passes(waiting[0], run)):
            self._place(waiting.popleft(), run)
        number = self._schedule.start_next()
        return None if number is None else self._placed[number]

    def finish(self, call: Call) -> None:
        """A started call is over."""
        del self._placed[call.number]
        self._schedule.finish(call.number)
        if self._barriers.pop(call.number, None):
            self._known.clear()

    def drop(self, calls: Collection[Call]) -> None:
        """Forget calls that did not start."""
        gone = {call.number for call in calls}
        self._waiting = deque(call for call in self._waiting if call.number not in gone)
        for number in gone:
            self._barriers.pop(number, None)
        placed = [number for number in gone if self._placed.pop(number, None)]
        if placed:
            self._schedule.drop(placed)

    def widen(self, call: Call, later: Iterable[Call]) -> None:
        """
        A started call accesses more than it declared, or changes something: it waits to start a second time.

        None of the later calls that may conflict with it has started; they are scheduled again.
        """
        again = [other for other in later if self._placed.pop(other.number, None)]
        self._schedule.drop({other.number for other in again})
        for other in again:
            self._barriers.pop(other.number, None)
        self._waiting.extendleft(reversed(again))
        self._schedule.widen(call.number, call.footprint, held=not call.read_only)
        if call.alone:
            self._barriers[call.number] = call

    def _place(self, call: Call, run: RunContext) -> None:
        assert call.tool is not None
        call.access = EXCLUSIVE if call.problem else declaration(call.tool, call.args, run)
        call.footprint = footprint(call.access, run.cwd, self._known)
        self._placed[call.number] = call
        held = self._in_runs(call) if self._batch else call.footprint
        self._schedule.add(call.number, held, call.tool.name, held=not call.read_only)
        if call.alone:
            self._barriers[call.number] = call

    def _passes(self, call: Call, run: RunContext) -> bool:
        """Whether the calls before this one that run alone cannot change what it accesses: all are of one group."""
        group = next(iter(self._barriers.values())).footprint.group
        if not group or call.problem or call.tool is None:
            return False
        return declaration(call.tool, call.args, run).group == group

    def _in_runs(self, call: Call) -> Footprint:
        """The batch path: adjacent read-only calls run together, so do those of a group; every other runs alone."""
        if call.footprint.group:
            return call.footprint
        together = not call.footprint.writes and (self._all_read or not self._all_must_read)
        return READS_WORLD if together else WRITES_WORLD
