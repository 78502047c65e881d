"""Blocking tools: in threads, beside the event loop."""

import asyncio
import contextvars
import queue
import threading

import pytest

from handrail.dispatch.threads import from_thread, in_thread
from handrail.errors import ToolError
from handrail.tools.abort import AbortReason
from handrail.tools.context import Progress, ProgressCallback, ToolContext
from handrail.tools.events import CallProgress
from handrail.tools.function import tool
from handrail.tools.outcome import Cause, Status
from tests.dispatch.turn import executor_for, outcome_of, rest, use

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"  # threads do not wait for a clock that jumps


@pytest.mark.proves("A37")
async def test_a_sync_tool_never_holds_up_the_loop_and_reports_while_it_runs() -> None:
    go_on, idle = threading.Event(), threading.Event()

    @tool
    def slow(progress: ProgressCallback) -> str:
        """Waits."""
        assert idle.wait(10)
        progress(Progress("half way"))
        assert go_on.wait(10)
        progress(Progress("nearly there"))
        return "done"

    async with executor_for(slow) as executor:
        events = executor.events
        executor.add(use("1", "slow"))
        executor.finish()
        asyncio.get_running_loop().call_later(0.05, idle.set)  # the loop sleeps when the thread has news
        _, _, news = [await anext(events) for _ in range(3)]
        assert isinstance(news, CallProgress)
        assert news.progress.message == "half way"  # the loop runs while the function waits
        go_on.set()
        [outcome] = await rest(executor)
        assert isinstance(event := await anext(events), CallProgress)
        assert event.progress.message == "nearly there"
    assert outcome.result.text == "done"


@pytest.mark.proves("E20")
async def test_progress_from_a_thread_of_an_async_tool_arrives_too() -> None:
    @tool
    async def helped(progress: ProgressCallback) -> str:
        """Lets a thread do it."""
        await asyncio.to_thread(progress, Progress("from a thread"))
        return "done"

    async with executor_for(helped) as executor:
        events = executor.events
        executor.add(use("1", "helped"))
        await rest(executor)
        seen = [await anext(events) for _ in range(4)]
    assert [event.progress.message for event in seen if isinstance(event, CallProgress)] == ["from a thread"]


@pytest.mark.parametrize("error", [ToolError("no"), StopIteration("no"), SystemExit("no")])
async def test_whatever_a_sync_tool_raises_becomes_a_result(error: BaseException) -> None:
    @tool
    def broken() -> str:
        """Fails."""
        raise error

    outcome = await outcome_of(broken)

    assert outcome.status is Status.ERROR
    assert "no" in outcome.result.text


async def test_a_sync_tool_that_takes_too_long_is_told_to_stop() -> None:
    told = threading.Event()

    @tool(timeout=0.01)
    def stubborn(ctx: ToolContext) -> str:
        """Polls until it is told."""
        ctx.abort.listen(lambda reason: told.set())
        assert told.wait(10)
        return "too late"

    outcome = await outcome_of(stubborn)

    assert outcome.cause is Cause.TIMED_OUT
    assert "was told to stop, but may still be running" in outcome.result.text
    assert told.wait(10)


async def test_an_interrupted_sync_tool_is_given_up_and_hears_of_it() -> None:
    began, heard = threading.Event(), threading.Event()
    reasons: list[AbortReason] = []

    def hear(reason: AbortReason) -> None:
        reasons.append(reason)
        heard.set()

    @tool(read_only=True)
    def deaf(ctx: ToolContext) -> str:
        """Looks at the signal from time to time."""
        ctx.abort.listen(hear)
        began.set()
        assert heard.wait(10)
        return "too late"

    async with executor_for(deaf) as executor:
        executor.add(use("1", "deaf"))
        await asyncio.to_thread(began.wait, 10)
        executor.interrupt(AbortReason.USER)
        [outcome] = await rest(executor)
    assert (outcome.cause, reasons) == (Cause.USER_INTERRUPTED, [AbortReason.USER])


async def test_a_thread_sees_the_context_variables_of_its_caller() -> None:
    variable = contextvars.ContextVar("variable", default="outside")
    variable.set("inside")

    assert await in_thread(variable.get) == "inside"


def test_a_thread_that_outlives_the_loop_ends_in_silence() -> None:
    go_on, ended = threading.Event(), threading.Event()
    begun: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()

    def late() -> str:
        begun.put(threading.current_thread())
        assert go_on.wait(10)
        ended.set()
        return "nobody listens"

    async def give_up() -> None:
        waiting = asyncio.create_task(in_thread(late))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])

    asyncio.run(give_up())
    thread = begun.get(timeout=10)
    go_on.set()
    thread.join(10)
    assert ended.is_set()


async def test_a_result_that_comes_after_the_wait_was_given_up_is_dropped() -> None:
    go_on, done = threading.Event(), asyncio.Event()
    begun: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()
    loop = asyncio.get_running_loop()

    def late() -> str:
        begun.put(threading.current_thread())
        assert go_on.wait(10)
        return "nobody waits"

    waiting = asyncio.create_task(in_thread(late))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    thread = await asyncio.to_thread(begun.get, timeout=10)
    go_on.set()
    await asyncio.to_thread(thread.join, 10)
    from_thread(loop, done.set)  # comes after what the thread left
    await done.wait()
    assert waiting.cancelled()
