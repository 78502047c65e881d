"""The schedule, against the plain rule that looks at every earlier call."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from handrail.dispatch.footprint import READS_WORLD, WRITES_WORLD, Footprint, conflict, footprint
from handrail.dispatch.schedule import Schedule, Scheduling
from handrail.errors import HandrailError
from handrail.tools.access import Access

PLACES = ("/a", "/a/x", "/a/x/1", "/a/y", "/b", "/b/x", "/", "clipboard")
CAP, CAPS = 3, {"narrow": 1, "wide": 2}


def of(reads: Iterable[str], writes: Iterable[str]) -> Footprint:
    return footprint(Access.of(reads=reads, writes=writes), Path("/"))


def footprints() -> st.SearchStrategy[Footprint]:
    some = st.sets(st.sampled_from(PLACES), max_size=2)
    named = st.builds(of, some, some)
    grouped = [footprint(Access.bookkeeping(width=width, group="g"), Path("/")) for width in ("shared", "exclusive")]
    return st.one_of(named, named, st.sampled_from([READS_WORLD, WRITES_WORLD, *grouped]))


@dataclass(frozen=True)
class Plain:
    key: int
    access: Footprint
    lane: str
    held: bool
    running: bool = False


def may_start(call: Plain, earlier: Iterable[Plain], running: list[Plain], *, holding: bool) -> bool:
    """The rule, as one would explain it."""
    return (
        not call.running
        and not (call.held and holding)
        and not any(conflict(other.access, call.access) for other in earlier)
        and len(running) < CAP
        and len([other for other in running if other.lane == call.lane]) < CAPS.get(call.lane, CAP)
    )


class ScheduleMatchesTheRule(RuleBasedStateMachine):
    """Whatever is added, ended, dropped or widened: the schedule starts exactly what the plain rule lets start."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule = Schedule(CAP, CAPS, holding=True)
        self.holding = True
        self.calls: list[Plain] = []
        self.next_key = 0

    def first_to_start(self) -> int | None:
        running = [call for call in self.calls if call.running]
        for at, call in enumerate(self.calls):
            if may_start(call, self.calls[:at], running, holding=self.holding):
                return call.key
        return None

    def put(self, key: int, **changes: object) -> None:
        self.calls = [replace(c, **changes) if c.key == key else c for c in self.calls]  # type: ignore[arg-type]  # a test's shorthand

    def pick(self, data: st.DataObject, calls: list[Plain]) -> Plain:
        return data.draw(st.sampled_from(calls))

    @rule(access=footprints(), lane=st.sampled_from(["", "", "narrow", "wide"]), held=st.booleans())
    def add(self, access: Footprint, lane: str, held: bool) -> None:
        self.schedule.add(self.next_key, access, lane, held=held)
        self.calls.append(Plain(self.next_key, access, lane, held))
        self.next_key += 1

    @rule()
    def start_what_may_start(self) -> None:
        while (expected := self.first_to_start()) is not None:
            assert self.schedule.start_next() == expected
            self.put(expected, running=True)

    @precondition(lambda self: self.first_to_start() is not None)
    @rule()
    def start_one(self) -> None:
        expected = self.first_to_start()
        assert expected is not None
        assert self.schedule.start_next() == expected
        self.put(expected, running=True)

    @precondition(lambda self: any(call.running for call in self.calls))
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        over = self.pick(data, [call for call in self.calls if call.running])
        self.schedule.finish(over.key)
        self.calls.remove(over)

    @precondition(lambda self: any(not call.running for call in self.calls))
    @rule(data=st.data())
    def finish_a_waiting_one(self, data: st.DataObject) -> None:
        over = self.pick(data, [call for call in self.calls if not call.running])
        self.schedule.finish(over.key)
        self.calls.remove(over)

    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        keys = data.draw(st.sets(st.sampled_from([call.key for call in self.calls]))) if self.calls else set()
        self.schedule.drop(keys)
        self.calls = [call for call in self.calls if call.running or call.key not in keys]

    @precondition(lambda self: any(call.running for call in self.calls))
    @rule(data=st.data(), access=footprints(), held=st.booleans())
    def widen(self, data: st.DataObject, access: Footprint, held: bool) -> None:
        wide = self.pick(data, [call for call in self.calls if call.running])
        later = [call for call in self.calls if call.key > wide.key and call.running]
        if any(conflict(call.access, access) for call in later):
            return  # the executor never asks for that
        self.schedule.widen(wide.key, access, held=held)
        self.put(wide.key, access=access, held=held, running=False)

    @rule()
    def release(self) -> None:
        self.schedule.release()
        self.holding = False

    @invariant()
    def nothing_starts_when_the_rule_says_nothing_may(self) -> None:
        if self.first_to_start() is None:
            assert self.schedule.start_next() is None


TestSchedule = pytest.mark.proves("E15", "E16", "E17", "E18", "R4")(ScheduleMatchesTheRule.TestCase)
TestSchedule.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=40)


@pytest.mark.parametrize("caps", [{"max_parallel": 0}, {"max_parallel_by_tool": {"Bash": -1}}])
def test_a_cap_that_lets_nothing_run_is_refused(caps: dict[str, int]) -> None:
    with pytest.raises(HandrailError, match="none ever runs"):
        Scheduling(**caps)  # type: ignore[arg-type]  # both kinds of cap go through one table


@pytest.mark.proves("E15")
def test_a_call_costs_the_same_steps_however_many_wait() -> None:
    """No call looks at all the others: the work for the last thousand of ten thousand is that of the first."""
    schedule = Schedule(1, {}, holding=False)
    waits = []
    for number in range(10_000):
        schedule.add(number, of((), [f"/a/{number % 7}"]) if number % 3 else READS_WORLD)
        node = schedule._nodes[number]
        waits.append(node.pending + len(node.groups))

    assert sum(waits[-1000:]) <= sum(waits[1000:2000]) + 10
