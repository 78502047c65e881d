"""Closing a run or an agent: it waits until nothing is left, and is refused where that wait would never end."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest

from handrail import Agent, HandrailError, RunEnded, tool
from handrail.conversation.stream import MessageStart, StreamEvent
from handrail.loop.events import RequestSent
from handrail.testing import ScriptedModel, gate, say, use
from handrail.tools.events import CallStarted

INSIDE = "cannot close the run that waits for it"
ELSEWHERE = "still being worked on in another event loop"


@tool(read_only=True)
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


# Closing from inside


@pytest.mark.anyio
@pytest.mark.parametrize("closed", ["agent", "run"])
@pytest.mark.parametrize("place", ["tool", "tool in a thread", "permission", "hook"])
async def test_what_a_run_waits_for_cannot_close_it(place: str, closed: str) -> None:
    refusals = list[str]()

    async def close() -> None:
        try:
            await (agent.aclose() if closed == "agent" else run.aclose())
        except HandrailError as error:
            refusals.append(str(error))

    @tool
    async def work() -> str:
        """Close the agent that runs this."""
        if place == "tool":
            await asyncio.gather(close())
        return "done"

    @tool
    def block() -> str:
        """Close the agent that runs this, from a thread."""
        asyncio.run(close())
        return "done"

    async def permit(*_question: object) -> bool:
        if place == "permission":
            await close()
        return True

    async def hook(*_input: object) -> dict[str, Any]:
        await close()
        return {}

    name = "block" if place == "tool in a thread" else "work"
    agent = Agent(
        ScriptedModel([[use("1", name)], [say("Done.")], [say("Again.")]]),
        [work, block],
        can_use_tool=permit,
        hooks={"PreToolUse": hook} if place == "hook" else {},
        env={},
    )
    run = agent.run("Go.")
    with anyio.fail_after(20):
        ended = [event.text async for event in run if isinstance(event, RunEnded)]

    assert ended == ["Done."]
    assert [INSIDE in refusal for refusal in refusals] == [True]
    assert (await agent.ask("And?")).text == "Again."
    await agent.aclose()


@pytest.mark.anyio
async def test_a_tool_may_close_another_agent_and_the_one_that_ran_it_before() -> None:
    @tool(read_only=True)
    async def ask_another() -> str:
        """Ask an agent of its own."""
        async with Agent(ScriptedModel([[say("Other.")]]), env={}) as other:
            return (await other.ask("Hi.")).text

    @tool(read_only=True)
    async def close_later() -> str:
        """Close the agent when the run is over."""
        later.append(asyncio.create_task(close_after()))
        return "soon"

    async def close_after() -> None:
        await over.wait()
        await agent.aclose()

    later, over = list[asyncio.Task[None]](), asyncio.Event()
    script = ScriptedModel([[use("1", "ask_another"), use("2", "close_later")], [say("Done.")]])
    agent = Agent(script, [ask_another, close_later], env={})

    with anyio.fail_after(20):
        assert (await agent.ask("Go.")).text == "Done."
        over.set()
        await later[0]


# Closing from several tasks


@pytest.mark.anyio
async def test_everyone_who_closes_a_run_waits_until_nothing_of_it_is_left() -> None:
    started, cleaned = asyncio.Event(), list[str]()

    @tool(read_only=True)
    async def slow() -> str:
        """Take its time to clean up."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await anyio.lowlevel.cancel_shielded_checkpoint()
            await anyio.lowlevel.cancel_shielded_checkpoint()
            cleaned.append("cleaned")
        return ""

    agent = Agent(ScriptedModel([[use("1", "slow")]]), [slow], env={})
    run = agent.run("Go.")

    async def read() -> None:
        async for _ in run:
            pass

    async def close() -> list[str]:
        await run.aclose()
        return list(cleaned)

    with anyio.fail_after(20):
        reader = asyncio.create_task(read())
        await started.wait()
        assert list(await asyncio.gather(close(), close())) == [["cleaned"], ["cleaned"]]
        await reader

    kinds = [type(block).__name__ for message in agent.messages for block in getattr(message, "content", ())]
    assert kinds == ["Text", "ToolUse", "ToolResult", "Text"], "the interruption is recorded once"


# Closing from another event loop


@pytest.mark.anyio
@pytest.mark.parametrize("at", [RequestSent, CallStarted])
async def test_a_run_is_not_closed_in_the_loop_of_another_thread(at: type) -> None:
    agent = Agent(ScriptedModel([[use("1", "wait")], [say("Again.")]]), [wait], env={})
    ended = list[str]()

    def close_elsewhere(close: Callable[[], Any]) -> None:
        async def closing() -> None:
            await close()

        asyncio.run(closing())

    run = agent.run("Go.")
    with anyio.fail_after(20):
        async for event in run:
            if isinstance(event, at):
                for close in (run.aclose, agent.aclose):
                    with pytest.raises(HandrailError, match=ELSEWHERE):
                        await asyncio.to_thread(close_elsewhere, close)
                await asyncio.to_thread(agent.interrupt)
            ended += [event.why.value] if isinstance(event, RunEnded) else []
        assert ended in (["aborted_streaming"], ["aborted_tools"])
        await asyncio.to_thread(close_elsewhere, agent.aclose)


def test_a_prompt_does_not_wait_for_a_loop_that_stands_still() -> None:
    agent = Agent(ScriptedModel([[gate(asyncio.Event())], [say("Next.")]]), env={})
    loop = asyncio.new_event_loop()
    run = agent.run("Go.")
    while not isinstance(loop.run_until_complete(run.__anext__()), RequestSent):
        pass
    loop.run_until_complete(asyncio.sleep(0))
    del run

    with pytest.raises(HandrailError, match=ELSEWHERE):
        agent.ask_sync("And?")

    loop.run_until_complete(agent.aclose())
    assert agent.ask_sync("And now?").text == "Next."
    loop.close()


# What an interrupt stops


@pytest.mark.anyio
async def test_an_interrupt_before_the_answer_begins_stops_no_tools() -> None:
    agent = Agent(ScriptedModel([[use("1", "wait")]]), [wait], env={})
    ended = list[str]()

    async for event in agent.run("Go."):
        if isinstance(event, RequestSent):
            agent.interrupt()
        ended += [event.why.value] if isinstance(event, RunEnded) else []

    assert ended == ["aborted_streaming"]


@pytest.mark.anyio
@pytest.mark.parametrize("by", ["interrupt", "aclose"])
async def test_a_model_that_fails_while_it_is_stopped_does_not_change_how_the_run_ends(
    by: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Fragile:
        async def stream(self, request: object) -> AsyncGenerator[StreamEvent, None]:
            try:
                yield MessageStart("m", "a model")
                await asyncio.Event().wait()
            finally:
                raise ConnectionError("the line was cut")

    unhandled = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))
    agent = Agent(Fragile(), env={})
    run, ended = agent.run("Hi."), list[str]()
    async for event in run:
        if isinstance(event, MessageStart):
            agent.interrupt() if by == "interrupt" else await run.aclose()
        ended += [event.why.value] if isinstance(event, RunEnded) else []
    del run
    gc.collect()

    assert (ended, unhandled) == (["aborted_streaming"] if by == "interrupt" else [], [])
    assert "the model failed while its answer was stopped" in caplog.text


@pytest.mark.anyio
async def test_a_failure_that_the_reader_of_a_run_leaves_unread_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    failed = asyncio.Event()

    class Failing:
        async def stream(self, request: object) -> AsyncGenerator[StreamEvent, None]:
            yield MessageStart("m", "a model")
            failed.set()
            raise ConnectionError("the line was cut")

    unhandled = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))
    agent = Agent(Failing(), env={})
    run = agent.run("Hi.")
    async for event in run:
        if isinstance(event, MessageStart):
            await failed.wait()
            await anyio.wait_all_tasks_blocked()
            await run.aclose()
    del run
    gc.collect()

    assert unhandled == []
    assert "the line was cut" in caplog.text
