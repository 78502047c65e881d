"""Random programs of calls: whatever the model asks for and whatever happens meanwhile, the promises hold."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.dispatch.retry_journal import RetryJournal
from handrail.dispatch.schedule import Scheduling
from handrail.testing import run_virtual
from handrail.tools.abort import AbortReason
from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import REAL_FAILURES, Outcome, Status
from tests.dispatch.world import NO_STORE, TRUSTING, Rewriting, Step, World, line, make, overlap, programs, start

Line = tuple[str, str, str, str]
CAPS = {"Narrow": 1}


def schedulings(policies: tuple[str, ...] = ("shell-chain", "isolate", "all")) -> st.SearchStrategy[Scheduling]:
    return st.builds(
        Scheduling,
        early_start=st.sampled_from(["permitted", "safe", "off"]),
        max_parallel=st.sampled_from([1, 2, 3, 10]),
        max_parallel_by_tool=st.sampled_from([{}, CAPS]),
        sibling_errors=st.sampled_from(policies),
        all_read_only=st.booleans(),
    )


# The same effect as one by one


async def one_by_one(steps: tuple[Step, ...], policy: str) -> tuple[list[Line], World]:
    """What a reader of the answer expects: each call alone, in order, in an executor of its own."""
    world, pool = make(steps)
    run = start()
    history: list[Line] = []
    shell_failed = False
    for step in steps:
        if shell_failed and step.kind in {"call", "invalid"} and not step.says_read_only:
            history.append((step.id, "cancelled", "sibling_error", ""))
            continue
        async with ToolExecutor(pool, run, NO_STORE, rails=TRUSTING) as executor:
            executor.add(step.block)
            [outcome] = [outcome async for outcome in executor.rest()]
        run = executor.run
        history.append(line(outcome))
        shell_failed |= policy == "shell-chain" and step.tool == "Shell" and outcome.cause in REAL_FAILURES
    return history, world


async def streamed(steps: tuple[Step, ...], scheduling: Scheduling) -> tuple[list[Line], World]:
    world, pool = make(steps)
    history: list[Line] = []
    async with ToolExecutor(pool, start(), NO_STORE, rails=TRUSTING, scheduling=scheduling) as executor:
        for step in steps:
            await asyncio.sleep(step.gap)
            executor.add(step.block)
            history += [line(outcome) for outcome in executor.ready()]
        history += [line(outcome) async for outcome in executor.rest()]
    return history, world


@pytest.mark.proves("R4", "R1", "E6", "E19", "E29", "E30", "E31", "E32", "E33", "P1")
@given(programs(), schedulings(("shell-chain", "isolate")))
def test_results_and_effects_are_those_of_running_the_calls_one_by_one(
    steps: tuple[Step, ...], scheduling: Scheduling
) -> None:
    """Streaming, all at once or in batches: the history and the files do not tell."""
    expected, serial_world = run_virtual(one_by_one(steps, scheduling.sibling_errors))

    history, world = run_virtual(streamed(steps, scheduling))

    assert history == expected
    assert world.leaves == serial_world.leaves
    assert world.overlaps == []
    assert world.most <= scheduling.max_parallel


# As early as the rule allows


@dataclass
class Watch:
    """What a reader of the events knows."""

    steps: dict[str, Step]
    queued: list[str]
    running: set[str]
    finished: set[str]

    def take(self, event: CallEvent) -> None:
        match event:
            case CallQueued(use=use):
                self.queued.append(use.id)
            case CallStarted(use=use):
                self.running.add(use.id)
            case CallFinished(outcome=outcome):
                self.running.discard(outcome.use.id)
                self.finished.add(outcome.use.id)

    def late(self, scheduling: Scheduling, cwd: Path, *, whole: bool) -> list[str]:
        """Calls that wait although the plain rule lets them start."""
        return [
            key for at, key in enumerate(self.queued) if self.may_start(at, scheduling, cwd, whole) and self.waits(key)
        ]

    def waits(self, key: str) -> bool:
        return key not in self.running and key not in self.finished

    def may_start(self, at: int, scheduling: Scheduling, cwd: Path, whole: bool) -> bool:
        step = self.steps[self.queued[at]]
        running = [self.steps[key] for key in self.running]
        of_its_kind = len([other for other in running if other.tool == step.tool])
        earlier = [self.steps[key] for key in self.queued[:at] if key not in self.finished]
        return (
            (
                whole
                or scheduling.early_start == "permitted"
                or (scheduling.early_start == "safe" and step.says_read_only)
            )
            and len(running) < scheduling.max_parallel
            and of_its_kind < scheduling.max_parallel_by_tool.get(step.tool, scheduling.max_parallel)
            and not any(overlap(step, other, cwd) for other in earlier)
        )


async def watched(steps: tuple[Step, ...], scheduling: Scheduling) -> tuple[list[list[str]], list[int]]:
    """At every moment when nothing is left to do but wait: who is late, and how many run."""
    _, pool = make(steps)
    watch = Watch({step.id: step for step in steps}, [], set(), set())
    late: list[list[str]] = []
    crowd: list[int] = []
    whole = False
    async with ToolExecutor(pool, start(), NO_STORE, rails=TRUSTING, scheduling=scheduling) as executor:

        async def read() -> None:
            async for event in executor.events:
                watch.take(event)

        async def look() -> None:
            await asyncio.sleep(0.5)  # everything else happens at full seconds
            while not whole or len(watch.finished) < len(steps):
                late.append(watch.late(scheduling, executor.run.cwd, whole=whole))
                crowd.append(len(watch.running))
                await asyncio.sleep(1)

        reading, looking = asyncio.create_task(read()), asyncio.create_task(look())
        for step in steps:
            await asyncio.sleep(step.gap)
            executor.add(step.block)
        await asyncio.sleep(1)
        whole = True
        async for _ in executor.rest():
            pass
    await asyncio.gather(reading, looking)
    return late, crowd


@pytest.mark.proves("E7", "E15", "E16", "E17", "E31", "R11")
@given(programs(), st.sampled_from(["safe", "permitted"]), st.sampled_from([1, 3, 10]), st.sampled_from([{}, CAPS]))
def test_a_call_starts_as_soon_as_the_plain_rule_lets_it(
    steps: tuple[Step, ...], early_start: str, cap: int, caps: dict[str, int]
) -> None:
    scheduling = Scheduling(early_start, cap, caps, sibling_errors="isolate")  # type: ignore[arg-type]  # from a list of literals

    late, crowd = run_virtual(watched(steps, scheduling))

    assert [calls for calls in late if calls] == []
    assert max(crowd, default=0) <= cap


# Whatever happens


@dataclass(frozen=True)
class Trouble:
    """Something that happens to a turn at some moment."""

    kind: str
    at: float


def troubles() -> st.SearchStrategy[tuple[Trouble, ...]]:
    kinds = ["user", "submit", "turn", "discard", "close", "cancel", "finish", "leave"]
    moments = st.floats(0, 20).map(lambda seconds: round(seconds * 2) / 2)
    return st.lists(st.builds(Trouble, st.sampled_from(kinds), moments), max_size=3).map(tuple)


@dataclass
class Story:
    """Everything that can be seen of one troubled turn."""

    world: World
    yielded: list[Outcome] = field(default_factory=list)
    outcomes: tuple[Outcome, ...] = ()
    events: list[CallEvent] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    alive: set[str] = field(default_factory=set)
    closed: bool = False
    leaving: bool = False


async def turn(story: Story, executor: ToolExecutor, steps: tuple[Step, ...]) -> None:
    """What a loop does, until somebody closes the executor behind its back or it loses interest."""
    async with executor:
        for step in steps:
            await asyncio.sleep(step.gap)
            if story.closed or story.leaving:
                return
            executor.add(step.block)
            story.added.append(step.id)
        async for outcome in executor.rest():
            story.yielded.append(outcome)
            if story.leaving:
                return


async def troubled(
    steps: tuple[Step, ...], scheduling: Scheduling, happening: tuple[Trouble, ...], *, rewriting: bool
) -> Story:
    world, pool = make(steps)
    rails = Rails(CarefulGate(trusting=True), Rewriting(world)) if rewriting else TRUSTING
    run = start()
    story = Story(world)
    executor = ToolExecutor(pool, run, NO_STORE, rails=rails, scheduling=scheduling, journal=RetryJournal())

    async def read() -> None:
        story.events += [event async for event in executor.events]

    caller, reader = asyncio.create_task(turn(story, executor, steps)), asyncio.create_task(read())
    others = {asyncio.current_task(), reader}

    def close() -> None:
        story.closed = True
        others.add(asyncio.create_task(executor.aclose()))

    acts: dict[str, Callable[[], object]] = {
        "user": lambda: executor.interrupt(AbortReason.USER),
        "submit": lambda: executor.interrupt(AbortReason.SUBMIT),
        "turn": lambda: run.abort.abort(AbortReason.USER),
        "discard": executor.discard,
        "close": close,
        "cancel": caller.cancel,
        "finish": executor.finish,
        "leave": lambda: setattr(story, "leaving", True),
    }
    for trouble in sorted(happening, key=lambda trouble: trouble.at):
        await asyncio.sleep(max(0.0, trouble.at - asyncio.get_running_loop().time()))
        acts[trouble.kind]()
    await asyncio.wait([caller])
    story.alive = {task.get_name() for task in asyncio.all_tasks() if task not in others}
    await executor.aclose()  # a caller that was cancelled before it began has not done that
    await reader
    if not caller.cancelled():
        caller.result()
    story.outcomes = executor.outcomes
    return story


def check(story: Story, scheduling: Scheduling) -> None:
    ids = [outcome.use.id for outcome in story.outcomes]
    assert ids == story.added, "exactly one outcome per call, in call order"
    yielded = [outcome.use.id for outcome in story.yielded]
    assert yielded == story.added[: len(yielded)], "results leave in call order"
    assert [o for o in story.yielded if o not in story.outcomes] == []
    assert story.alive == set(), "no task outlives the executor"
    assert story.world.active == {}
    assert story.world.most <= scheduling.max_parallel
    assert story.world.overlaps == []
    for outcome in story.outcomes:
        assert outcome.result.tool_use_id == outcome.use.id
        assert outcome.result.is_error == (outcome.status is not Status.OK)
        assert outcome.result.content
    check_events(story)


def check_events(story: Story) -> None:
    orders: dict[str, list[str]] = {}
    news: dict[str, list[str]] = {}
    for event in story.events:
        use = event.outcome.use if isinstance(event, CallFinished) else event.use
        orders.setdefault(use.id, []).append(type(event).__name__)
        if isinstance(event, CallProgress):
            news.setdefault(use.id, []).append(event.progress.message)
    assert list(orders) == story.added
    for order in orders.values():
        shape = "".join(name[4] for name in order)  # Queued, Started, Progress, Finished
        assert shape.lstrip("Q").strip("SPF") == ""
        assert shape.startswith("Q")
        assert shape.endswith("F")
        assert Counter(shape)["Q"] == Counter(shape)["F"] == 1
        assert "P" not in shape or shape.startswith("QSP")
    assert news == story.world.told, "progress is never lost and never late"


@pytest.mark.proves("R1", "R4", "E9", "E10", "E19", "E20", "E22", "E24", "E28", "L1", "L3")
@given(programs(), schedulings(), troubles())
def test_whatever_happens_each_call_has_one_outcome_and_nothing_stays_alive(
    steps: tuple[Step, ...], scheduling: Scheduling, happening: tuple[Trouble, ...]
) -> None:
    story = run_virtual(troubled(steps, scheduling, happening, rewriting=False))

    check(story, scheduling)


@pytest.mark.proves("R1", "R4", "F13")
@given(programs(rewriting=True), schedulings(), troubles())
def test_the_promises_hold_when_hooks_change_what_calls_touch(
    steps: tuple[Step, ...], scheduling: Scheduling, happening: tuple[Trouble, ...]
) -> None:
    story = run_virtual(troubled(steps, scheduling, happening, rewriting=True))

    check(story, scheduling)


# An answer that is given up and asked for again


@pytest.mark.proves("E28", "R4")
@given(programs(most=6), st.sampled_from(["safe", "permitted"]), st.integers(0, 12))
def test_the_retry_of_a_discarded_answer_repeats_no_effect(
    steps: tuple[Step, ...], early_start: str, moment: int
) -> None:
    scheduling = Scheduling(early_start, sibling_errors="isolate")  # type: ignore[arg-type]  # from a list of literals

    async def twice() -> Counter[int]:
        world, pool = make(steps)
        journal = RetryJournal()
        began: Counter[int] = Counter()
        for last in (False, True):
            world.began_at.clear()
            async with ToolExecutor(
                pool, start(), NO_STORE, rails=TRUSTING, scheduling=scheduling, journal=journal
            ) as executor:
                for step in steps:
                    executor.add(step.block)
                if last:
                    async for _ in executor.rest():
                        pass
                else:
                    await asyncio.sleep(moment + 0.5)
                    executor.discard()
            began.update(key for key in world.began_at if not world.steps[key].says_read_only)
        return began

    began = run_virtual(twice())

    assert [key for key, times in began.items() if times > 1] == []
