"""Interrupts, messages that come meanwhile, limits, and leaving early."""

import asyncio
import gc
from typing import Any

import anyio
import pytest

from handrail import Limits, Text, ToolResult, tool
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.conversation.stream import BlockStart, Delta, Usage, UsageUpdate
from handrail.errors import HandrailError
from handrail.loop.events import (
    Interrupted,
    LoopEvent,
    MessageComplete,
    Notice,
    QueuedMessageTaken,
    RequestSent,
    ResultsComplete,
)
from handrail.loop.run import Run
from handrail.loop.state import Move, Why
from handrail.testing import GatedTool, gate, run_virtual, say, use
from handrail.tools.events import CallFinished, CallStarted
from handrail.tools.outcome import Cause
from tests.scenarios.playing import an_agent, ending, only, played, refused, roles, scripted

pytestmark = pytest.mark.anyio


async def until(run: Run, kind: type[object], count: int = 1) -> list[LoopEvent]:
    """Read until so many events of a kind have come."""
    seen: list[LoopEvent] = []
    while sum(isinstance(event, kind) for event in seen) < count:
        seen.append(await anext(run))
    return seen


@pytest.mark.proves("K5", "L6", "L7")
async def test_an_interrupt_while_the_model_talks_keeps_what_was_said() -> None:
    half = [say("First."), BlockStart(1, "text"), Delta(1, "Second, al"), gate(asyncio.Event())]
    agent = an_agent(scripted([half, [say("Yes?")]]))
    run = agent.run("Talk.")

    with anyio.fail_after(5):
        await until(run, Delta, 2)
        agent.interrupt()
        events = await played(run)

    assert [event.why for event in only(events, Interrupted)] == [Why.ABORTED_STREAMING]
    assert (ending(events).move, ending(events).why) == (Move.ABORTED, Why.ABORTED_STREAMING)
    assert agent.messages[1:] == [
        AssistantMessage((Text("First."), Text("Second, al")), "scripted"),
        UserMessage((Text("[The user interrupted the answer.]"),)),
    ]
    assert (await agent.ask("Go on.")).text == "Yes?"
    assert not refused(agent.messages)


@pytest.mark.proves("K5", "L6", "L7", "R1")
async def test_an_interrupt_while_tools_run_gives_each_call_a_result() -> None:
    slow = GatedTool("Slow")
    agent = an_agent(scripted([[use("1", "Slow"), use("2", "Slow")]]), slow)
    run = agent.run("Go.")

    with anyio.fail_after(5):
        slow.open_all("2")
        await until(run, CallFinished)
        agent.interrupt()
        events = await played(run)

    assert ending(events).why is Why.ABORTED_TOOLS
    [results] = only(events, ResultsComplete)
    assert [outcome.cause for outcome in results.outcomes] == [Cause.USER_INTERRUPTED, Cause.DONE]
    assert roles(agent.messages) == ["user", "assistant", "results", "user"]
    assert not refused(agent.messages)


@pytest.mark.proves("K5", "R1")
async def test_an_interrupt_while_a_tool_runs_beside_the_stream_stops_both() -> None:
    before = asyncio.all_tasks()
    slow = GatedTool("Slow")
    agent = an_agent(scripted([[say("I look."), use("1", "Slow"), gate(asyncio.Event())]]), slow)
    run = agent.run("Go.")

    with anyio.fail_after(5):
        await until(run, CallStarted)
        agent.interrupt()
        events = await played(run)

    assert ending(events).why is Why.ABORTED_STREAMING
    assert roles(agent.messages) == ["user", "assistant", "results", "user"]
    assert not refused(agent.messages)
    assert asyncio.all_tasks() == before


@pytest.mark.proves("K5")
@pytest.mark.parametrize("kind", [RequestSent, MessageComplete, ResultsComplete])
async def test_an_interrupt_between_two_steps_ends_the_run_before_the_next_request(kind: type[object]) -> None:
    model = scripted([[use("1", "Slow")], [say("Never asked.")]])
    slow = GatedTool("Slow")
    slow.open_all("1")
    agent = an_agent(model, slow)
    run = agent.run("Go.")

    await until(run, kind)
    agent.interrupt()
    events = await played(run)

    assert ending(events).move is Move.ABORTED
    assert len(model.requests) <= 1
    assert not refused(agent.messages)


@pytest.mark.proves("K5")
async def test_an_interrupt_before_the_first_request_sends_none() -> None:
    model = scripted([])
    agent = an_agent(model)
    run = agent.run("Go.")

    await anext(run)
    agent.interrupt()
    events = await played(run)

    assert ending(events).why is Why.ABORTED_STREAMING
    assert model.requests == []
    assert roles(agent.messages) == ["user", "user"]


@pytest.mark.proves("L2", "L4", "L5", "L6")
async def test_a_new_message_stops_what_gives_way_lets_the_rest_finish_and_is_answered() -> None:
    reading, writing = GatedTool("Reading"), GatedTool("Writing", read_only=True, interrupt="block")
    agent = an_agent(scripted([[use("1", "Reading"), use("2", "Writing")], [say("Blue it is.")]]), reading, writing)
    run = agent.run("Paint it red.")

    with anyio.fail_after(5):
        await until(run, CallStarted, 2)
        agent.send("No, blue.", interrupt=True)
        writing.open_all("2")
        events = await played(run)

    [results] = only(events, ResultsComplete)
    assert [outcome.cause for outcome in results.outcomes] == [Cause.SUBMIT_INTERRUPTED, Cause.DONE]
    assert not only(events, Interrupted)
    assert [event.message for event in only(events, QueuedMessageTaken)] == [UserMessage((Text("No, blue."),))]
    assert roles(agent.messages) == ["user", "assistant", "results", "user", "assistant"]
    assert ending(events).text == "Blue it is."
    assert not refused(agent.messages)


async def test_a_message_that_comes_during_the_last_answer_is_answered_too() -> None:
    agent = an_agent(scripted([[say("One.")], [say("Two.")]]))
    run = agent.run("1?")

    await until(run, RequestSent)
    agent.send("2?")
    events = await played(run)

    assert [sent.why for sent in only(events, RequestSent)] == [Why.QUEUED_MESSAGE]
    assert roles(agent.messages) == ["user", "assistant", "user", "assistant"]
    assert ending(events).text == "Two."


async def test_messages_without_a_run_wait_for_the_next_prompt() -> None:
    agent = an_agent(scripted([[say("Both.")]]))
    agent.send("First,")

    await agent.ask("second.")

    assert agent.messages[:2] == [UserMessage((Text("First,"),)), UserMessage((Text("second."),))]
    assert not refused(agent.messages)


# Limits


@tool(read_only=True)
async def step(n: int) -> str:
    """One step."""
    return str(n)


def steps(count: int, *usage: UsageUpdate) -> list[Any]:
    return [[*usage, use(str(n), "step", n=n)] for n in range(count)]


async def test_the_limit_of_turns_ends_the_run_after_the_results() -> None:
    agent = an_agent(scripted([*steps(3), [say("Done.")]]), step, limits=Limits(turns=3))

    ended = ending(await played(agent.run("Go.")))

    assert (ended.move, ended.why, ended.turns, ended.is_error) == (Move.LIMIT, Why.MAX_TURNS, 3, True)
    assert roles(agent.messages)[-2:] == ["assistant", "results"]
    assert (await agent.ask("Go on.")).text == "Done."
    assert not refused(agent.messages)


async def test_a_last_answer_within_the_limit_is_an_answer() -> None:
    agent = an_agent(scripted([*steps(2), [say("Done.")]]), step, limits=Limits(turns=3))

    assert (await agent.ask("Go.")).turns == 3


@pytest.mark.proves("K9")
async def test_the_limit_of_dollars_ends_the_run() -> None:
    used = UsageUpdate(Usage(input_tokens=100_000, output_tokens=10_000))
    model = scripted([*steps(5, used)])
    agent = an_agent(model, step, limits=Limits(dollars=0.9), model_name="claude-sonnet-4-6")

    ended = ending(await played(agent.run("Go.")))

    assert (ended.why, ended.turns) == (Why.MAX_DOLLARS, 2)
    assert ended.dollars == pytest.approx(2 * (0.1 * 3 + 0.01 * 15))
    assert {name: spent.answers for name, spent in ended.spent.items()} == {"scripted": 2}


@pytest.mark.proves("K9")
async def test_a_limit_of_dollars_without_a_price_is_said_not_to_hold() -> None:
    agent = an_agent(scripted([*steps(2), [say("Done.")]]), step, limits=Limits(dollars=0.01))

    events = await played(agent.run("Go."))

    [notice] = only(events, Notice)
    assert "cannot be kept" in notice.text
    assert ending(events).why is Why.COMPLETED
    assert ending(events).dollars is None


async def test_the_limit_of_tokens_ends_the_run() -> None:
    used = UsageUpdate(Usage(input_tokens=90, output_tokens=10))
    agent = an_agent(scripted(steps(5, used)), step, limits=Limits(tokens=250))

    ended = ending(await played(agent.run("Go.")))

    assert (ended.why, ended.turns) == (Why.MAX_TOKENS, 3)


@pytest.mark.parametrize("phase", ["streaming", "tools"])
def test_the_limit_of_seconds_stops_what_runs(phase: str) -> None:
    async def main() -> None:
        slow = GatedTool("Slow")
        script = [use("1", "Slow"), *([gate(asyncio.Event())] if phase == "streaming" else [])]
        agent = an_agent(scripted([script, [say("Late.")]]), slow, limits=Limits(seconds=10))

        ended = ending(await played(agent.run("Go.")))

        assert (ended.move, ended.why, ended.seconds) == (Move.LIMIT, Why.MAX_SECONDS, 10)
        assert roles(agent.messages) == ["user", "assistant", "results", "user"]
        assert (await agent.ask("Go on.")).text == "Late."
        assert not refused(agent.messages)

    run_virtual(main())


def test_time_that_is_used_up_between_turns_prevents_the_next_request() -> None:
    async def main() -> None:
        model = scripted([*steps(1), [say("Never asked.")]])
        agent = an_agent(model, step, limits=Limits(seconds=10))
        run = agent.run("Go.")
        await until(run, ResultsComplete)
        await asyncio.sleep(11)

        assert ending(await played(run)).why is Why.MAX_SECONDS
        assert len(model.requests) == 1

    run_virtual(main())


# Leaving early


@pytest.mark.proves("R1")
@pytest.mark.parametrize("kind", [RequestSent, Delta, CallStarted, MessageComplete, ResultsComplete])
async def test_closing_a_run_early_leaves_no_task_and_a_good_history(kind: type[object]) -> None:
    before = asyncio.all_tasks()
    slow = GatedTool("Slow")
    if kind is ResultsComplete:
        slow.open_all("1")
    stuck = [] if kind in {MessageComplete, ResultsComplete} else [gate(asyncio.Event())]
    first = [[say("I look."), use("1", "Slow"), *stuck]] if kind is not RequestSent else []  # it is not asked at all
    agent = an_agent(scripted([*first, [say("Here.")]]), slow)
    run = agent.run("Go.")

    with anyio.fail_after(5):
        await until(run, kind)
        await run.aclose()

        assert asyncio.all_tasks() == before
        assert not agent.running
        assert [event async for event in run] == []
        assert (await agent.ask("And?")).text == "Here."
    assert not refused(agent.messages)


@pytest.mark.proves("R1")
async def test_a_run_that_is_dropped_stops_by_itself() -> None:
    slow = GatedTool("Slow")
    agent = an_agent(scripted([[use("1", "Slow"), gate(asyncio.Event())], [say("Here.")]]), slow)

    with anyio.fail_after(5):
        async for event in agent.run("Go."):
            if isinstance(event, CallStarted):
                break
        gc.collect()
        assert (await agent.ask("And?")).text == "Here."

    assert slow.ended == []
    assert roles(agent.messages) == ["user", "assistant", "results", "user", "assistant"]
    assert not refused(agent.messages)


async def test_a_second_prompt_beside_a_running_one_is_refused() -> None:
    agent = an_agent(scripted([[say("Hi.")]]))
    run = agent.run("1")
    await anext(run)

    with pytest.raises(HandrailError, match="still being worked on"):
        agent.run("2")
    await run.aclose()


async def test_two_runs_made_before_either_began_do_not_mix() -> None:
    agent = an_agent(scripted([[say("Hi.")]]))
    first, second = agent.run("1"), agent.run("2")
    await anext(first)

    with pytest.raises(HandrailError, match="still being worked on"):
        await anext(second)
    assert ending(await played(first)).text == "Hi."


async def test_results_of_a_stopped_run_say_that_they_are_none() -> None:
    slow = GatedTool("Slow")
    agent = an_agent(scripted([[use("1", "Slow")]]), slow)
    run = agent.run("Go.")
    await until(run, CallStarted)
    await run.aclose()

    results = agent.messages[2].content  # type: ignore[union-attr]
    assert isinstance(results[0], ToolResult)
    assert results[0].is_error
