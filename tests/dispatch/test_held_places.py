"""Calls of agents that work side by side hold the places they name."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from handrail.dispatch.footprint import Footprint, conflict, footprint
from handrail.dispatch.held_places import HeldPlaces
from handrail.tools.access import Access

PLACES = ("/a", "/a/x", "/a/y", "/b", "/b/x")


def named(reads: Iterable[str], writes: Iterable[str]) -> Footprint:
    return footprint(Access.of(reads=reads, writes=writes), Path("/"))


some = st.sets(st.sampled_from(PLACES), max_size=2)


@given(
    st.lists(st.tuples(st.builds(named, some, some), st.integers(0, 3), st.booleans()), min_size=2, max_size=8),
    st.booleans(),
)
def test_calls_that_conflict_never_overlap_and_each_gets_its_turn(
    calls: list[tuple[Footprint, int, bool]], released: bool
) -> None:
    async def work() -> list[str]:
        places, running, done = HeldPlaces(), list[Footprint](), list[str]()

        async def call(wanted: Footprint, turns: int, number: int) -> None:
            hold = await places.acquire(wanted)
            try:
                if hold is not None:
                    assert not any(conflict(other, wanted) for other in running)
                    running.append(wanted)
                for _ in range(turns):
                    await asyncio.sleep(0)
            finally:
                if hold is not None:
                    running.remove(wanted)
                places.release(hold)
            done.append(str(number))

        tasks = [asyncio.create_task(call(each, turns, n)) for n, (each, turns, _) in enumerate(calls)]
        await asyncio.sleep(0)
        for task, (_, _, is_cancelled) in zip(tasks, calls, strict=True):
            if is_cancelled and released:
                task.cancel()
        ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert not [each for each in ended if isinstance(each, AssertionError)]
        return done

    done = asyncio.run(work())
    if not released:
        assert len(done) == len(calls)
