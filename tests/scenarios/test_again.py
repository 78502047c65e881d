"""Asking again: answers that break off, calls that keep failing, answers that do not fit, answers to choose from."""

import asyncio
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from handrail import CarefulGate, Limits, Rails, Text, ToolUse, tool
from handrail.conversation.messages import AssistantMessage, Attachment, UserMessage
from handrail.conversation.request import Chain
from handrail.conversation.stream import BlockEnd, StreamFailure, Usage, UsageUpdate
from handrail.errors import HandrailError, RunError
from handrail.loop.compaction.plan import Compaction, CompactionRequest
from handrail.loop.events import (
    AlternativesOffered,
    AnswerDiscarded,
    Compacted,
    MessageAdded,
    RequestSent,
    ResultsComplete,
)
from handrail.loop.state import Move, Why
from handrail.testing import GatedTool, gate, run_virtual, say, use
from handrail.tools.events import CallStarted
from handrail.tools.outcome import Cause, Status
from tests.scenarios.playing import an_agent, ending, only, played, refused, roles, scripted

pytestmark = pytest.mark.anyio

CUT = StreamFailure("cut", "the connection broke off", retryable=True)
TRUSTING = Rails(CarefulGate(trusting=True))


@tool(read_only=True)
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


# Answers that break off


@pytest.mark.proves("K8", "E28", "R1")
async def test_an_answer_that_breaks_off_after_a_call_is_given_up_and_asked_for_again_in_one_piece() -> None:
    script = [[say("I look."), use("1", "shout", text="a"), CUT], [use("2", "shout", text="a")], [say("Done.")]]
    agent = an_agent(scripted(script), shout)

    events = await played(agent.run("Go."))

    [discarded] = only(events, AnswerDiscarded)
    assert [call.id for call in discarded.calls] == ["1"]
    assert [(sent.turn, sent.attempt, sent.plain) for sent in only(events, RequestSent)] == [
        (1, 1, False), (1, 2, True), (2, 1, False),
    ]  # fmt: skip
    assert roles(agent.messages) == ["user", "assistant", "results", "assistant"]
    assert ending(events).turns == 2
    assert not refused(agent.messages)


@pytest.mark.proves("K8")
async def test_a_side_effect_of_a_given_up_answer_is_not_repeated() -> None:
    writing = GatedTool("Save", shared=False)
    writing.open_all("1", "2")
    done = asyncio.Event()
    script = [[use("1", "Save", file="a"), gate(done), CUT], [use("2", "Save", file="a")], [say("Done.")]]
    agent = an_agent(scripted(script), writing, rails=TRUSTING)
    run = agent.run("Go.")

    events = []
    with anyio.fail_after(5):
        async for event in run:
            events.append(event)
            if writing.ended == ["1"]:
                done.set()

    assert writing.started == ["1"]
    [results] = only(events, ResultsComplete)
    assert [(o.use.id, o.status, o.cause) for o in results.outcomes] == [("2", Status.OK, Cause.DONE_BEFORE)]


@pytest.mark.proves("K8")
@pytest.mark.parametrize("has_ended", [True, False], ids=["it had ended", "it was cut off"])
async def test_a_side_effect_is_not_repeated_however_often_answers_break_off(has_ended: bool) -> None:
    writing = GatedTool("Save", shared=False)
    writing.open_all(*("1" * has_ended), "2", "3")
    done = asyncio.Event()
    script = [
        [use("1", "Save", file="a"), gate(done), CUT],
        [use("2", "Save", file="a"), CUT],
        [use("3", "Save", file="a")],
        [say("Done.")],
    ]
    agent = an_agent(scripted(script), writing, rails=TRUSTING)

    events = []
    with anyio.fail_after(5):
        async for event in agent.run("Go."):
            events.append(event)
            if (writing.ended if has_ended else writing.started) == ["1"]:
                done.set()

    assert writing.started == ["1"]
    [results] = only(events, ResultsComplete)
    cause = Cause.DONE_BEFORE if has_ended else Cause.OUTCOME_UNKNOWN
    assert [(outcome.use.id, outcome.cause) for outcome in results.outcomes] == [("3", cause)]


@pytest.mark.proves("K8")
async def test_a_side_effect_that_the_second_answer_does_not_ask_for_is_told() -> None:
    writing = GatedTool("Save", shared=False)
    cut = asyncio.Event()
    script = [[use("1", "Save", file="a"), gate(cut), CUT], [use("2", "shout", text="b")], [say("Done.")]]
    agent = an_agent(scripted(script), writing, shout, rails=TRUSTING)
    run = agent.run("Go.")

    events = []
    with anyio.fail_after(5):
        async for event in run:
            events.append(event)
            if writing.started == ["1"]:
                cut.set()

    [note] = [event.message for event in only(events, MessageAdded) if isinstance(event.message, Attachment)]
    assert note.kind == "given_up_calls"
    assert isinstance(note.content[0], Text)
    assert "Save {'file': 'a'}: it was cut off" in note.content[0].text
    assert roles(agent.messages) == ["user", "assistant", "results", "given_up_calls", "assistant"]


FILES = st.lists(st.sampled_from("abc"), max_size=4)


async def saved_in_a_retry(broken: list[str], last: list[str]) -> tuple[list[str], list[str], str]:
    """What a tool began for an answer that broke off, what for the retry, and what the program told the model."""
    began: list[str] = []
    cut = asyncio.Event()

    @tool()
    async def save(file: str) -> str:
        """Write a file."""
        began.append(file)
        await asyncio.sleep(0.1)
        return f"saved {file}"

    def calls(answer: int, files: list[str]) -> list[ToolUse]:
        return [use(f"{answer}-{at}", "save", file=file) for at, file in enumerate(files)]

    script = [[*calls(1, broken), gate(cut), CUT], [*calls(2, last), say("On.")], [say("Done.")]]
    agent = an_agent(scripted(script), save, rails=TRUSTING)
    asyncio.get_running_loop().call_later(0.25, cut.set)  # two have ended then, a third is cut off
    before: list[str] = []
    async for event in agent.run("Go."):
        if isinstance(event, AnswerDiscarded):
            before = [*began]
    told = str([message for message in agent.messages if isinstance(message, Attachment)])
    return before, began[len(before) :], told


@pytest.mark.proves("R4", "R11", "K8")
@given(broken=FILES.filter(bool), last=FILES)
def test_a_write_that_began_for_an_answer_that_broke_off_is_never_repeated_and_always_told(
    broken: list[str], last: list[str]
) -> None:
    before, after, told = run_virtual(saved_in_a_retry(broken, last))

    assert before == broken[:3], "each began as soon as the one before it was over, while the answer went on"
    for file in "abc":
        again = last.count(file)
        assert after.count(file) == max(0, again - before.count(file))
        assert (f"save {{'file': '{file}'}}" in told) == (before.count(file) > again)


@pytest.mark.proves("K6", "R1")
async def test_after_three_broken_answers_the_run_fails_and_keeps_the_results_of_the_last() -> None:
    script = [[use(str(n), "shout", text="a"), CUT] for n in range(3)]
    agent = an_agent(scripted(script), shout)

    events = await played(agent.run("Go."))

    assert len(only(events, AnswerDiscarded)) == 2
    assert (ending(events).move, ending(events).failure) == (Move.ERROR, CUT)
    assert roles(agent.messages) == ["user", "assistant", "results"]
    assert not refused(agent.messages)


async def test_a_stream_that_just_ends_has_broken_off() -> None:
    class Abrupt:
        asked = 0

        async def stream(self, request: Any) -> Any:
            self.asked += 1
            if self.asked == 1:
                yield BlockEnd(0, ToolUse("1", "shout", {"text": "a"}))
                return
            async for event in scripted([[say("Done.")]]).stream(request):
                yield event

    events = await played(an_agent(Abrupt(), shout).run("Go."))

    assert [event.failure.kind for event in only(events, AnswerDiscarded)] == ["cut"]
    assert ending(events).text == "Done."


# The loop guard


@tool(read_only=True)
async def look(path: str) -> str:
    """Always fails in the same way."""
    raise ValueError(f"no {path}")


def steered(messages: Sequence[object]) -> list[int]:
    return [
        at for at, message in enumerate(messages) if isinstance(message, Attachment) and message.kind == "loop_guard"
    ]


async def test_a_model_that_repeats_a_failing_call_is_steered_and_then_stopped() -> None:
    agent = an_agent(scripted([[use(str(n), "look", path="a")] for n in range(9)]), look)

    ended = ending(await played(agent.run("Go.")))

    assert (ended.move, ended.why, ended.turns) == (Move.ERROR, Why.REPEATED_FAILURE, 6)
    assert ended.problem == "look failed 6 times in a row with the same input and the same error."
    assert len(steered(agent.messages)) == 3
    assert roles(agent.messages)[:7] == ["user", *["assistant", "results"] * 3]
    assert steered(agent.messages)[0] == 7
    assert not refused(agent.messages)


@tool(read_only=True)
async def status(of: str) -> str:
    """Always the same."""
    return f"{of} is fine"


async def test_a_model_that_repeats_a_call_without_learning_anything_is_steered_and_then_stopped() -> None:
    agent = an_agent(scripted([[use(str(n), "status", of="a")] for n in range(15)]), status)

    ended = ending(await played(agent.run("Go.")))

    assert (ended.move, ended.why, ended.turns) == (Move.ERROR, Why.REPEATED_CALL, 12)
    assert ended.problem == "status was called 12 times in a row with the same input and gave the same result."
    assert len(steered(agent.messages)) == 3
    assert not refused(agent.messages)


async def test_another_input_or_a_success_in_between_starts_the_count_again() -> None:
    paths = ["a", "a", "b", "a", "a", "b", "a", "a"]
    script = [[use(str(n), "look", path=path)] for n, path in enumerate(paths)]
    agent = an_agent(scripted([*script, [say("I give up.")]]), look)

    assert (await agent.ask("Go.")).text == "I give up."
    assert steered(agent.messages) == []


async def test_many_equal_failures_in_one_answer_count_once() -> None:
    same = [use(str(n), "look", path="a") for n in range(6)]
    agent = an_agent(scripted([same, [say("I see.")]]), look)

    assert (await agent.ask("Go.")).text == "I see."
    assert steered(agent.messages) == []


# Answers that must fit a schema


class Weather(BaseModel):
    city: str
    degrees: int


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_a_structured_answer_is_checked_data() -> None:
    agent = an_agent(scripted([[say('{"city": "Bern", "degrees": 7}')]]), output=Weather)

    assert (await agent.ask("Weather?")).structured == Weather(city="Bern", degrees=7)


async def test_a_schema_gives_a_mapping_also_out_of_a_fence() -> None:
    agent = an_agent(scripted([[say('Here:\n```json\n{"n": 1}\n```')]]), output=SCHEMA)

    assert (await agent.ask("Count.")).structured == {"n": 1}


async def test_an_unfit_answer_is_asked_for_again_with_the_problem() -> None:
    agent = an_agent(scripted([[say("one")], [say('{"n": "one"}')], [say('{"n": 1}')]]), output=SCHEMA)

    answer = await agent.ask("Count.")

    assert (answer.structured, answer.turns) == ({"n": 1}, 3)
    notes = [m.content[0].text for m in agent.messages if isinstance(m, Attachment)]  # type: ignore[union-attr]
    assert "it is not JSON" in notes[0]
    assert 'n: "one" is not of type "integer"' in notes[1]


async def test_what_does_not_fit_a_model_is_told_field_by_field() -> None:
    answers = ['["Bern", 7]', '{"city": "Bern", "degrees": "warm"}', '{"city": "Bern", "degrees": 7}']
    agent = an_agent(scripted([[say(text)] for text in answers]), output=Weather)

    assert (await agent.ask("Weather?")).turns == 3
    notes = [m.content[0].text for m in agent.messages if isinstance(m, Attachment)]  # type: ignore[union-attr]
    assert "an object is wanted, and it is ['Bern', 7]" in notes[0]
    assert "The field 'degrees' is wrong" in notes[1]


async def test_unfit_answers_end_the_run_after_the_retries() -> None:
    agent = an_agent(scripted([[say("no")]] * 4), output=SCHEMA)

    with pytest.raises(RunError, match="no answer fitted the schema: it is not JSON"):
        await agent.ask("Count.")
    assert len([m for m in agent.messages if isinstance(m, AssistantMessage)]) == 4


async def test_a_schema_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(HandrailError, match="cannot be used"):
        an_agent(scripted([]), output={"type": "no such type"})


# Two answers to choose from


@pytest.mark.proves("K12")
async def test_a_caller_chooses_between_two_answers_before_any_tool_runs() -> None:
    started: list[str] = []

    @tool(read_only=True)
    async def note(text: str) -> str:
        """Note it."""
        started.append(text)
        return text

    offered: list[tuple[str, str]] = []

    async def second(one: AssistantMessage, other: AssistantMessage) -> AssistantMessage:
        offered.append((one.text, other.text))
        assert started == (["b"] if other.text == "D" else [])
        return other

    used = UsageUpdate(Usage(10, 1))
    script = [
        [say("A"), used, use("1", "note", text="a")],
        [say("B"), used, use("1", "note", text="b")],
        [say("C")],
        [say("D")],
    ]
    agent = an_agent(scripted(script), note, choose=second)

    events = await played(agent.run("Go."))

    assert started == ["b"]
    assert sorted(offered[0]) == ["A", "B"]
    assert len(only(events, AlternativesOffered)) == 2
    assert ending(events).spent["scripted"].answers == 4
    assert not refused(agent.messages)


@pytest.mark.proves("K12", "K5")
async def test_an_interrupt_while_the_caller_chooses_runs_nothing() -> None:
    async def stop(one: AssistantMessage, other: AssistantMessage) -> AssistantMessage:
        agent.interrupt()
        return one

    agent = an_agent(scripted([[use("1", "shout", text="a")]] * 2), shout, choose=stop)

    events = await played(agent.run("Go."))

    assert ending(events).move is Move.ABORTED
    assert not only(events, CallStarted)
    assert not refused(agent.messages)


# The points where others step in


async def test_the_history_can_be_shortened_before_a_request() -> None:
    seen: list[CompactionRequest] = []

    async def shorten(request: CompactionRequest) -> Compaction | None:
        seen.append(request)
        if request.context_tokens < 100:
            return None
        return Compaction([UserMessage((Text("So far: nothing."),))], "full", "made shorter")

    used = UsageUpdate(Usage(input_tokens=99, output_tokens=1))
    script = [[used, use("1", "shout", text="a")], [say("Done.")]]
    agent = an_agent(scripted(script), shout, compact=shorten)

    events = await played(agent.run("Go."))

    assert [request.context_tokens for request in seen] == [0, 100]
    assert only(events, Compacted) == [Compacted("full", 3, 1, 100, "made shorter")]
    assert roles(agent.messages) == ["user", "assistant"]


async def test_the_next_prompt_knows_what_the_last_one_filled() -> None:
    seen: list[int] = []

    async def shorten(request: CompactionRequest) -> Compaction | None:
        seen.append(request.context_tokens)
        return Compaction([UserMessage((Text("So far: nothing."),))], "full") if len(seen) == 3 else None

    def used(input_tokens: int | None = None, output_tokens: int | None = None) -> UsageUpdate:
        return UsageUpdate(Usage(input_tokens, output_tokens))

    answers = [[used(input_tokens=99, output_tokens=1)], [used(output_tokens=7)], [used(input_tokens=5)], []]
    agent = an_agent(scripted([[*counts, say("Yes.")] for counts in answers]), compact=shorten)
    for prompt in ("One", "Two", "Three", "Four"):
        await played(agent.run(prompt))
    await agent.clear()
    with pytest.raises(LookupError):
        await played(agent.run("Five"))

    assert seen == [0, 100, 0, 5, 0]  # only output counted = not known; a shorter history = not known


async def test_a_request_that_is_too_long_is_shortened_and_made_again_once() -> None:
    too_long = StreamFailure("invalid_request_error", "prompt is too long: 9 tokens", retryable=False, status=400)

    async def shorten(request: CompactionRequest) -> Compaction | None:
        return Compaction(request.history.messages[-1:], "full") if request.forced else None

    agent = an_agent(scripted([[too_long], [too_long]]), compact=shorten)

    events = await played(agent.run("Go."))

    assert len(only(events, Compacted)) == 1
    assert ending(events).failure == too_long


@pytest.mark.parametrize("how", ["interrupt", "time", "cancel"])
def test_shortening_can_be_stopped_like_an_answer(how: str) -> None:
    async def for_ever(request: CompactionRequest) -> Compaction | None:
        asyncio.get_running_loop().call_later(5, stop)
        await asyncio.Event().wait()
        return None

    def stop() -> None:
        if how == "interrupt":
            agent.interrupt()
        elif how == "cancel":
            reading[0].cancel()

    async def main() -> None:
        reading.append(asyncio.create_task(played(agent.run("Go."))))
        if how == "cancel":
            with pytest.raises(asyncio.CancelledError):
                await reading[0]
        else:
            expected = Why.ABORTED_STREAMING if how == "interrupt" else Why.MAX_SECONDS
            assert ending(await reading[0]).why is expected
        assert asyncio.all_tasks() == {asyncio.current_task()}

    reading: list[asyncio.Task[Any]] = []
    agent = an_agent(scripted([]), compact=for_ever, limits=Limits(seconds=9))
    run_virtual(main())


@pytest.mark.proves("K10", "K11")
async def test_each_request_carries_its_options_and_its_chain() -> None:
    from handrail.conversation.request import ThinkingOptions
    from handrail.loop.run_config import RequestOptions

    model = scripted([[use("1", "shout", text="a")], [say("Done.")]])
    request_options = RequestOptions(max_tokens=9, thinking=ThinkingOptions("adaptive"), effort="low")
    agent = an_agent(model, shout, chain=Chain("c1", 2), model_name="big", request=request_options)

    events = await played(agent.run("Go."))

    for request in model.requests:
        assert (request.model, request.thinking, request.effort, request.max_tokens, request.chain) == (  # type: ignore[attr-defined]
            "big", ThinkingOptions("adaptive"), "low", 9, Chain("c1", 2),
        )  # fmt: skip
    assert {sent.chain for sent in only(events, RequestSent)} == {Chain("c1", 2)}
