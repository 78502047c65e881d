"""The order of a run: which step follows which, and that no step is taken before the events so far were read."""

import asyncio
import gc
from typing import Any

import anyio
import pytest

from handrail import Text, tool
from handrail.conversation.messages import Attachment, UserMessage
from handrail.conversation.stream import StreamFailure
from handrail.errors import HandrailError
from handrail.loop.compaction.plan import Compact, Compaction, CompactionRequest, SummaryPlan
from handrail.loop.events import (
    AnswerDiscarded,
    Compacted,
    Interrupted,
    LoopEvent,
    MessageAdded,
    MessageComplete,
    RequestSent,
    ResultsComplete,
    RunEnded,
    RunStarted,
    Summarising,
)
from handrail.loop.run import Run
from handrail.loop.state import Why
from handrail.testing import GatedTool, gate, say, use
from handrail.tools.events import CallStarted
from tests.scenarios.playing import an_agent, ending, only, played, refused, roles, scripted

pytestmark = pytest.mark.anyio

TOO_LONG = StreamFailure("invalid_request_error", "prompt is too long: 9 tokens", retryable=False, status=400)
CUT = StreamFailure("cut", "the connection broke off", retryable=True)
STEPS = (
    RunStarted, RequestSent, MessageComplete, AnswerDiscarded, ResultsComplete,
    Summarising, Compacted, Interrupted, RunEnded,
)  # fmt: skip


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return "seen"


class Summaries:
    """Plans a summary for each request that fits, and counts those that were made."""

    def __init__(self, *, forced: bool = False, fails: bool = False) -> None:
        self.count = 0
        self._forced = forced
        self._fails = fails

    async def __call__(self, request: CompactionRequest) -> SummaryPlan | None:
        is_wanted = request.forced == self._forced and not self.count
        return SummaryPlan(self._summarise) if is_wanted else None

    async def _summarise(self) -> Compaction | None:
        self.count += 1
        if self._fails:
            return None
        return Compaction([Attachment("summary", (Text("So far: nothing."),))], "full", "one summary")


async def stubs(request: CompactionRequest) -> Compaction | None:
    return (
        None if request.forced or len(request.history.messages) > 1 else Compaction(request.history.messages, "micro")
    )


@pytest.mark.parametrize(
    ("script", "compact", "steps"),
    [
        pytest.param([[say("Done.")]], None, "RunStarted RequestSent MessageComplete RunEnded", id="an answer"),
        pytest.param(
            [[use("1", "look")], [say("Done.")]],
            None,
            "RunStarted RequestSent MessageComplete ResultsComplete RequestSent MessageComplete RunEnded",
            id="calls lead to the next request",
        ),
        pytest.param(
            [[use("1", "look"), CUT], [say("Done.")]],
            None,
            "RunStarted RequestSent AnswerDiscarded RequestSent MessageComplete RunEnded",
            id="an answer that breaks off is asked for again",
        ),
        pytest.param(
            [[say("Done.")]],
            stubs,
            "RunStarted Compacted RequestSent MessageComplete RunEnded",
            id="stubs need no announcement",
        ),
        pytest.param(
            [[say("Done.")]],
            Summaries(),
            "RunStarted Summarising Summarising Compacted RequestSent MessageComplete RunEnded",
            id="a summary comes before the request",
        ),
        pytest.param(
            [[say("Done.")]],
            Summaries(fails=True),
            "RunStarted Summarising Summarising RequestSent MessageComplete RunEnded",
            id="a summary that fails leaves the history as it was",
        ),
        pytest.param(
            [[TOO_LONG], [say("Done.")]],
            Summaries(forced=True),
            "RunStarted RequestSent Summarising Summarising Compacted RequestSent MessageComplete RunEnded",
            id="a request that is too long is made again after a summary",
        ),
        pytest.param(
            [[TOO_LONG]],
            Summaries(forced=True, fails=True),
            "RunStarted RequestSent Summarising Summarising RunEnded",
            id="without a summary it ends the run",
        ),
    ],
)
async def test_which_step_follows_which(script: Any, compact: Compact | None, steps: str) -> None:
    agent = an_agent(scripted(script), look, compact=compact)

    events = await played(agent.run("Go."))

    shown = [type(event).__name__ for event in events if isinstance(event, STEPS)]
    assert shown == steps.split()
    assert not refused([*agent.messages, UserMessage((say("Next."),))])


async def until(run: Run, kind: type[object]) -> list[LoopEvent]:
    events = [await anext(run)]
    while not isinstance(events[-1], kind):
        events.append(await anext(run))
    return events


async def test_a_summary_is_made_only_after_its_announcement_was_read() -> None:
    summaries = Summaries()
    agent = an_agent(scripted([[say("Done.")]]), compact=summaries)
    run = agent.run("Go.")

    await until(run, Summarising)
    await anyio.wait_all_tasks_blocked()
    assert summaries.count == 0

    assert await anext(run) == Summarising(on=False)
    assert summaries.count == 1
    assert ending(await played(run)).text == "Done."


@pytest.mark.proves("R1")
@pytest.mark.parametrize("how", ["close", "drop", "interrupt"])
async def test_leaving_at_the_announcement_makes_no_summary(how: str) -> None:
    before = asyncio.all_tasks()
    summaries = Summaries()
    agent = an_agent(scripted([[say("Here.")]]), compact=summaries)
    run = agent.run("Go.")
    await until(run, Summarising)

    with anyio.fail_after(5):
        if how == "close":
            await run.aclose()
            assert [event async for event in run] == []
        elif how == "interrupt":
            agent.interrupt()
            assert [type(event) for event in await played(run)] == [Summarising, Interrupted, MessageAdded, RunEnded]
        del run
        gc.collect()
        assert not agent.running
        await anyio.wait_all_tasks_blocked()
        assert asyncio.all_tasks() == before
        assert summaries.count == 0

        assert (await agent.ask("And?")).text == "Here."
    assert not refused(agent.messages)


@pytest.mark.proves("R1")
async def test_a_run_that_another_task_closes_ends_for_its_reader() -> None:
    slow = GatedTool("Slow")
    agent = an_agent(scripted([[use("1", "Slow"), gate(asyncio.Event())], [say("Here.")]]), slow)
    run = agent.run("Go.")

    with anyio.fail_after(5):
        await until(run, CallStarted)
        reader = asyncio.create_task(played(run))
        await anyio.wait_all_tasks_blocked()
        await run.aclose()

        assert not only(await reader, RunEnded)
        assert roles(agent.messages) == ["user", "assistant", "results", "user"]
        assert (await agent.ask("And?")).text == "Here."
    assert not refused(agent.messages)


async def test_a_summary_on_request_that_fails_ends_with_the_reason() -> None:
    async def summarise() -> Compaction | None:
        raise HandrailError("The model could not summarise the conversation: no.")

    async def plan(request: CompactionRequest) -> SummaryPlan:
        return SummaryPlan(summarise)

    agent = an_agent(scripted([]), compact=plan)

    events = await played(agent.compact("Keep the names."))

    assert only(events, Summarising) == [Summarising(on=True), Summarising(on=False)]
    assert (ending(events).why, ending(events).text) == (
        Why.COMPLETED,
        "The model could not summarise the conversation: no.",
    )
