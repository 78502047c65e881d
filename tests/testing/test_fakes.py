"""The fakes that others rely on do what they say."""

import asyncio
from typing import Any

import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.stream import (
    BlockEnd,
    BlockStart,
    Delta,
    MessageEnd,
    MessageStart,
    StreamEvent,
    StreamFailure,
)
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.dispatch.schedule import Scheduling
from handrail.testing import (
    FixedApprover,
    GatedTool,
    ScriptedModel,
    VirtualTimeLoop,
    gate,
    pause,
    run_virtual,
    say,
    use,
)
from handrail.tools.outcome import Status
from handrail.tools.permission import Verdict
from tests.dispatch.turn import executor_for, outcome_of, rest


async def events_of(model: ScriptedModel) -> list[StreamEvent]:
    return [event async for event in model.stream({"messages": []})]


# The clock


def test_sleeping_on_the_virtual_clock_costs_no_time_and_keeps_the_order() -> None:
    async def sleepers() -> list[tuple[float, str]]:
        woke: list[tuple[float, str]] = []

        async def sleep(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            woke.append((asyncio.get_running_loop().time(), name))

        await asyncio.gather(sleep("year", 31_536_000), sleep("hour", 3600), sleep("day", 86_400))
        return woke

    assert run_virtual(sleepers()) == [(3600, "hour"), (86_400, "day"), (31_536_000, "year")]


def test_the_virtual_clock_stands_still_while_there_is_something_to_do() -> None:
    async def busy() -> float:
        for _ in range(100):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run_virtual(busy()) == 0


def test_threads_work_on_the_virtual_clock() -> None:
    async def thread() -> tuple[int, float]:
        return await asyncio.to_thread(lambda: 6 * 7), asyncio.get_running_loop().time()

    assert run_virtual(thread()) == (42, 0)


def test_a_virtual_loop_can_be_used_by_a_runner() -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(asyncio.sleep(1000))
        assert runner.get_loop().time() == 1000


# The model


def test_a_scripted_model_streams_each_answer_in_order_and_keeps_the_requests() -> None:
    async def conversation() -> None:
        model = ScriptedModel([[say("I look."), use("1", "Read", file_path="a")], [say("Done.")]])
        assert await events_of(model) == [
            MessageStart("message-1", "scripted"),
            BlockStart(0, "text"),
            Delta(0, "I look."),
            BlockEnd(0, Text("I look.")),
            BlockStart(1, "tool_use", "1", "Read"),
            BlockEnd(1, ToolUse("1", "Read", {"file_path": "a"})),
            MessageEnd("end_turn"),
        ]
        assert (await events_of(model))[3] == BlockEnd(0, Text("Done."))
        assert model.requests == [{"messages": []}] * 2
        with pytest.raises(LookupError, match="the script has 2 answers, and answer 3 was asked for"):
            await events_of(model)

    run_virtual(conversation())


@pytest.mark.parametrize("script", [say("Hello."), [say("Hello.")], ["Hello."], "Hello."])
def test_a_script_that_is_not_a_list_of_answers_is_refused_with_the_form_of_one(script: Any) -> None:
    with pytest.raises(TypeError, match=r"""Give a list of answers, each a list of steps: \[\[say\("Hello."\)\]\]"""):
        ScriptedModel(script)


def test_a_scripted_model_pauses_waits_and_hands_on_events_as_they_are() -> None:
    async def stream() -> tuple[list[str], float]:
        open_gate = asyncio.Event()
        failure = StreamFailure("overloaded", "try later", retryable=True)
        model = ScriptedModel([[pause(5), say("a"), gate(open_gate), failure]])
        seen: list[str] = []
        async for event in model.stream({}):
            seen.append(type(event).__name__)
            if isinstance(event, BlockEnd):
                asyncio.get_running_loop().call_later(7, open_gate.set)
        return seen, asyncio.get_running_loop().time()

    assert run_virtual(stream()) == (
        ["MessageStart", "BlockStart", "Delta", "BlockEnd", "StreamFailure", "MessageEnd"],
        12,
    )


# The tool


def test_a_gated_call_ends_when_the_test_opens_its_gate() -> None:
    async def turn() -> None:
        tool = GatedTool()
        tool.failing.add("b")
        async with executor_for(tool) as executor:
            executor.add(use("a", "Gated"))
            executor.add(use("b", "Gated", anything="goes"))
            await asyncio.sleep(1)
            assert (tool.started, tool.ended) == (["a", "b"], [])
            tool.gate("b").set()
            await asyncio.sleep(1)
            assert tool.ended == ["b"]
            tool.open_all("a")
            outcomes = await rest(executor)
        assert [outcome.result.text for outcome in outcomes] == ["a done", "b was told to fail."]

    run_virtual(turn())


@pytest.mark.parametrize(
    ("shared", "read_only", "starts_early"), [(True, None, True), (False, None, False), (False, True, True)]
)
def test_a_gated_tool_is_what_the_test_says(shared: bool, read_only: bool | None, starts_early: bool) -> None:
    async def turn() -> list[str]:
        tool = GatedTool("Mine", shared=shared, read_only=read_only, interrupt="block")
        assert (tool.name, tool.interrupt) == ("Mine", "block")
        async with executor_for(tool, scheduling=Scheduling(early_start="safe")) as executor:
            executor.add(use("a", "Mine"))
            await asyncio.sleep(1)
            return tool.started

    assert run_virtual(turn()) == (["a"] if starts_early else [])


# The person


@pytest.mark.parametrize("allow", [True, False])
def test_a_fixed_approver_gives_its_answer_and_remembers_the_question(allow: bool) -> None:
    async def turn() -> None:
        tool, person = GatedTool(shared=False), FixedApprover(allow=allow, reason="because")
        tool.open_all("a")
        outcome = await outcome_of(tool, use("a", "Gated"), rails=Rails(CarefulGate(person)))
        assert person.asked == ["Gated"]
        assert outcome.status is (Status.OK if allow else Status.DENIED)
        assert outcome.decision is not None
        assert outcome.decision.reason == "because"
        assert outcome.decision.opinions[-1].verdict is (Verdict.ALLOW if allow else Verdict.DENY)

    run_virtual(turn())
