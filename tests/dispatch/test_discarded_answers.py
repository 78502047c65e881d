"""Answers that are given up: nothing of them goes on, and a retry repeats no effect."""

import asyncio
from typing import Any

import pytest

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.retry_journal import RetryJournal
from handrail.testing import GatedTool
from handrail.tools.context import ToolContext
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tools.output import Output
from tests.dispatch.turn import ALL, FileTool, executor_for, gated_writer, rest, settled, shell, use

pytestmark = pytest.mark.anyio


@pytest.mark.proves("E28", "E27")
async def test_after_a_discard_nothing_starts_and_nothing_leaves() -> None:
    tool = gated_writer()
    async with executor_for(tool, scheduling=ALL) as executor:
        executor.add(use("a", "Writer"))
        executor.add(use("b", "Writer"))
        await settled()
        executor.discard()
        executor.discard()
        executor.add(use("c", "Writer"))
        assert list(executor.ready()) == []
        assert await rest(executor) == []
    assert tool.started == ["a"]
    assert [(o.status, o.cause) for o in executor.outcomes] == [(Status.DISCARDED, Cause.STREAMING_FALLBACK)] * 3


@pytest.mark.proves("E28")
async def test_a_discard_wakes_whoever_waits_for_the_rest() -> None:
    async with executor_for(GatedTool()) as executor:
        executor.add(use("a"))
        waiting = asyncio.create_task(rest(executor))
        await settled()
        executor.discard()
        assert await waiting == []


@pytest.mark.proves("E28")
async def test_a_discard_does_not_wait_for_calls_that_are_slow_to_stop() -> None:
    class Slow(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            try:
                return await super().call(args, ctx)
            finally:
                await asyncio.sleep(100)

    now = asyncio.get_running_loop().time
    async with executor_for(Slow()) as executor:
        executor.add(use("a"))
        waiting = asyncio.create_task(rest(executor))
        await settled()
        executor.discard()
        discarded_at = now()
        assert await waiting == []
        assert now() == discarded_at


async def retried(first: list[ToolUse], second: list[ToolUse], tool: GatedTool) -> list[Outcome]:
    """The answer is discarded once nothing moves any more, and asked for again."""
    journal = RetryJournal()
    async with executor_for(tool, scheduling=ALL, journal=journal) as executor:
        for call in first:
            executor.add(call)
        await settled()
        executor.discard()
        executor.discard()  # to be sure
    async with executor_for(tool, scheduling=ALL, journal=journal) as executor:
        for call in second:
            executor.add(call)
        return await rest(executor)


@pytest.mark.proves("E28")
async def test_a_retry_gives_the_result_of_a_call_that_had_finished_instead_of_running_it_again() -> None:
    tool = gated_writer()
    tool.open_all("a", "b", "c")

    outcomes = await retried(
        [use("a", "Writer", x=1, y="\ud800")],
        [use("b", "Writer", y="\ud800", x=1), use("c", "Writer", x=1, y="\ud800")],
        tool,
    )

    assert tool.started == ["a", "c"]  # it was asked for twice in the second answer, so it runs once more
    assert [o.cause for o in outcomes] == [Cause.DONE_BEFORE, Cause.DONE]
    assert outcomes[0].result.tool_use_id == "b"
    assert outcomes[0].result.text.startswith("a done\nThis ran once already")


@pytest.mark.proves("E28")
async def test_a_retry_does_not_repeat_a_call_that_was_cut_off_and_says_so() -> None:
    tool = gated_writer()
    tool.open_all("b")

    [outcome] = await retried([use("a", "Writer")], [use("b", "Writer")], tool)

    assert (outcome.cause, outcome.result.is_error) == (Cause.OUTCOME_UNKNOWN, True)
    assert "What it did is not known" in outcome.result.text
    assert tool.started == ["a"]


@pytest.mark.proves("E28")
async def test_a_retry_runs_a_call_that_had_not_begun() -> None:
    tool = gated_writer()
    tool.open_all("c")

    [outcome] = await retried([use("a", "Writer", x=1), use("b", "Writer", x=2)], [use("c", "Writer", x=2)], tool)

    assert (outcome.cause, tool.started) == (Cause.DONE, ["a", "c"])


@pytest.mark.proves("E28")
async def test_a_retry_runs_reading_calls_and_other_inputs_again() -> None:
    tool = FileTool("Files")
    tool.open_all("a", "b", "c", "d")

    outcomes = await retried(
        [use("a", "Files", reads=["/x"]), use("b", "Files", writes=["/x"])],
        [use("c", "Files", reads=["/x"]), use("d", "Files", writes=["/y"])],
        tool,
    )

    assert [o.cause for o in outcomes] == [Cause.DONE, Cause.DONE]


@pytest.mark.proves("E28", "E23")
async def test_a_shell_failure_that_is_given_from_the_journal_cancels_siblings_again() -> None:
    tool = shell()
    tool.failing.add("a")
    tool.open_all("a")

    outcomes = await retried([use("a", "Shell", x=1)], [use("b", "Shell", x=1), use("c", "Shell", x=2)], tool)

    assert [o.cause for o in outcomes] == [Cause.DONE_BEFORE, Cause.SIBLING_ERROR]
