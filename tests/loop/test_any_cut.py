"""
Whatever is cut off, wherever: the history is one that strict servers accept, and nothing goes on running.

Random scripts are played on a virtual clock; at a random moment the reader is cancelled, the run interrupted, closed,
dropped, or a message comes in. The moments of the scripts are small numbers, so that cuts hit every await.
"""

import asyncio
import contextlib
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail import Agent, CarefulGate, Limits, Scheduling, tool
from handrail.conversation.blocks import BrokenToolUse, ToolUse
from handrail.conversation.messages import UserMessage
from handrail.conversation.stream import BlockEnd, BlockStart, Delta, MessageEnd, StreamFailure
from handrail.loop.compaction.plan import Compaction, CompactionRequest, SummaryPlan
from handrail.testing import pause, run_virtual, say
from handrail.testing.model import Step
from tests.opening import open_agent, with_compaction
from tests.scenarios.playing import refused, scripted

Cut = Literal["cancel", "interrupt", "close", "drop", "send", "submit", "nothing"]


@tool(read_only=True, concurrency_safe=True)
async def read(seconds: int) -> str:
    """Read for a while."""
    await asyncio.sleep(seconds)
    return "read"


@tool
async def write(seconds: int) -> str:
    """Write for a while."""
    await asyncio.sleep(seconds)
    return "written"


@tool(read_only=True)
async def clean_up_slowly(seconds: int) -> str:
    """Does not let go at once."""
    try:
        await asyncio.sleep(seconds)
    finally:
        await asyncio.sleep(1)
    return "clean"


@tool(read_only=True)
async def broken(seconds: int) -> str:
    """Fail after a while."""
    await asyncio.sleep(seconds)
    raise ValueError("no")


TOOLS = [read, write, clean_up_slowly, broken]
NAMES = [each.name for each in TOOLS] + ["unknown"]

calls = st.builds(
    lambda name, seconds, number: ToolUse(f"c{number}", name, {"seconds": seconds}),
    st.sampled_from(NAMES),
    st.integers(0, 3),
    st.integers(0, 5),  # ids repeat: they have to be repaired
)
steps: st.SearchStrategy[Step] = st.one_of(
    calls,
    st.just(say("words")),
    st.builds(pause, st.integers(1, 3)),
    st.just(BlockEnd(50, BrokenToolUse("b", "read", "{", "it was cut"))),
    st.just(BlockStart(60, "text")),
    st.just(Delta(60, "half a ")),
)
ends = st.sampled_from(
    [
        (),
        (MessageEnd("max_tokens"),),
        (StreamFailure("cut", "gone", retryable=True),),
        (StreamFailure("bad", "no", retryable=False),),
    ]
)
answers = st.builds(lambda body, end: [*body, *end], st.lists(steps, max_size=6), ends)
scripts = st.lists(answers, min_size=1, max_size=4)
cuts = st.tuples(st.sampled_from(Cut.__args__), st.integers(0, 12))  # type: ignore[attr-defined]
schedulings = st.builds(Scheduling, early_start=st.sampled_from(["permitted", "safe", "off"]))
limits = st.builds(
    Limits,
    turns=st.none() | st.integers(1, 3),
    seconds=st.none() | st.integers(1, 6),
    tokens=st.none(),
    dollars=st.none(),
)


async def reading(agent: Agent[Any], prompt: str) -> None:
    run = agent.run(prompt)
    try:
        async for _ in run:
            pass
    except LookupError as error:
        if not str(error).startswith("the script has"):
            raise


async def cut_at(agent: Agent[Any], cut: Cut, moment: int) -> None:
    """Play a prompt; at the moment, do what the cut says."""
    task = asyncio.create_task(reading(agent, "Go."))
    await asyncio.sleep(moment)
    match cut:
        case "cancel":
            task.cancel()
        case "interrupt":
            agent.interrupt()
        case "close":
            await agent.aclose()
        case "drop":
            task.cancel()
            task = asyncio.create_task(asyncio.sleep(0))
        case "send" | "submit":
            agent.send("One more thing.", interrupt=cut == "submit")
        case "nothing":
            pass
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def check(script: list[Any], cut: tuple[Cut, int], options: dict[str, Any]) -> None:
    chosen = {"builtin_tools": False, "env": {}, "gate": CarefulGate(trusting=True), **options}
    compact, choose = chosen.pop("compact", None), chosen.pop("choose", None)
    agent = with_compaction(open_agent(scripted(script), TOOLS, choose_answer=choose, **chosen), compact)

    await cut_at(agent, *cut)
    assert not refused([*agent.messages, UserMessage((say("Next."),))])

    # the conversation can go on, and nothing of the cut run comes back
    await reading(agent, "Next.")
    assert not refused([*agent.messages, UserMessage((say("Last."),))])
    await asyncio.sleep(2)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.proves("R1", "K5", "K6")
@settings(max_examples=2 * settings().max_examples)
@given(scripts, cuts, schedulings, limits)
def test_the_history_is_good_after_any_cut(
    script: list[Any], cut: tuple[Cut, int], scheduling: Scheduling, limit: Limits
) -> None:
    run_virtual(check(script, cut, {"scheduling": scheduling, "limits": limit}))


@pytest.mark.proves("R1", "K12")
@given(scripts, cuts)
def test_the_history_is_good_after_any_cut_with_two_answers_to_choose_from(
    script: list[Any], cut: tuple[Cut, int]
) -> None:
    async def choose(first: Any, second: Any) -> Any:
        await asyncio.sleep(1)
        return second

    run_virtual(check(script, cut, {"choose": choose}))


@pytest.mark.proves("R1")
@given(scripts, cuts, st.sampled_from(["micro", "full", "fails"]))
def test_the_history_is_good_after_any_cut_around_a_compaction(
    script: list[Any], cut: tuple[Cut, int], way: str
) -> None:
    async def summarise() -> Compaction | None:
        await asyncio.sleep(1)
        return Compaction([UserMessage((say("So far: nothing."),))], "full") if way == "full" else None

    async def compact(request: CompactionRequest) -> Compaction | SummaryPlan | None:
        await asyncio.sleep(1)
        return Compaction(request.history.messages[:], "micro") if way == "micro" else SummaryPlan(summarise)

    run_virtual(check(script, cut, {"compact": compact}))
