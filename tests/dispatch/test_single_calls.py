"""Calls of an executor that are not part of an answer."""

import asyncio
from contextvars import ContextVar

import pytest

from handrail.tools.function import tool
from handrail.tools.outcome import Status
from tests.dispatch.turn import FileTool, executor_for, gated_writer, settled, use

pytestmark = pytest.mark.anyio


@pytest.mark.proves("E19", "R4")
async def test_a_call_of_its_own_has_its_outcome_at_once_even_if_an_earlier_one_still_runs() -> None:
    tool = FileTool("Writer", shared=False)
    async with executor_for(tool) as executor:
        executor.finish()
        slow = asyncio.create_task(executor.execute(use("slow", "Writer", writes=["/1"])))
        await settled()
        fast = asyncio.create_task(executor.execute(use("fast", "Writer", writes=["/2"])))
        same = asyncio.create_task(executor.execute(use("same", "Writer", writes=["/1"])))
        await settled()
        assert tool.started == ["slow", "fast"]

        tool.open_all("fast")
        assert (await fast).status is Status.OK
        assert tool.started == ["slow", "fast"]

        tool.open_all("slow", "same")
        assert [(await each).use.id for each in (slow, same)] == ["slow", "same"]


async def test_cancelling_a_call_of_its_own_stops_it_alone() -> None:
    tool = gated_writer()
    async with executor_for(tool) as executor:
        executor.finish()
        first = asyncio.create_task(executor.execute(use("first", "Writer")))
        queued = asyncio.create_task(executor.execute(use("queued", "Writer")))
        last = asyncio.create_task(executor.execute(use("last", "Writer")))
        await settled()

        for stopped in (queued, first):
            stopped.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stopped
        await settled()
        assert tool.started == ["first", "last"]

        tool.open_all("last")
        assert (await last).status is Status.OK
    assert [each.status for each in executor.outcomes] == [Status.CANCELLED, Status.CANCELLED, Status.OK]


async def test_a_cancelled_call_of_its_own_is_waited_for_until_it_has_cleaned_up() -> None:
    cleaned = asyncio.Event()

    @tool
    async def slow() -> str:
        """Clean up slowly."""
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)
            cleaned.set()
        return ""

    async with executor_for(slow) as executor:
        executor.finish()
        waiting = asyncio.create_task(executor.execute(use("a", "slow")))
        await settled()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert cleaned.is_set()


async def test_a_call_of_its_own_runs_in_the_context_of_its_caller_also_when_it_had_to_wait() -> None:
    asked_by: ContextVar[str] = ContextVar("asked_by")
    seen: list[str] = []

    @tool
    async def note() -> str:
        """Note who asked."""
        await asyncio.sleep(1)
        seen.append(asked_by.get())
        return ""

    async def ask(name: str) -> None:
        asked_by.set(name)
        await executor.execute(use(name, "note"))

    async with executor_for(note) as executor:
        executor.finish()
        await asyncio.gather(ask("ann"), ask("bob"))
    assert seen == ["ann", "bob"]
