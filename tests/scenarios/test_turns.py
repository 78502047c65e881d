"""Whole turns through the public API with a scripted model."""

import asyncio
from collections.abc import Sequence

import anyio
import pytest

from handrail import Output, Text, ToolResult, ToolUse, tool
from handrail.conversation.blocks import BrokenToolUse, ServerBlock
from handrail.conversation.messages import AssistantMessage, Attachment, SystemNote, UserMessage
from handrail.conversation.stream import BlockEnd, BlockStart, Delta, MessageEnd, MessageStart, StreamFailure
from handrail.errors import RunError
from handrail.loop.events import (
    BlockComplete,
    MessageAdded,
    MessageComplete,
    RequestSent,
    ResultsComplete,
    RunStarted,
)
from handrail.loop.state import Move, Why
from handrail.testing import FixedApprover, GatedTool, gate, say, use
from handrail.tools.context import ToolContext
from handrail.tools.events import CallFinished, CallQueued, CallStarted
from handrail.tools.outcome import Cause, Outcome, Status
from tests.scenarios.playing import an_agent, ending, only, played, refused, roles, scripted

pytestmark = pytest.mark.anyio


@tool(read_only=True, concurrency_safe=True)
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@tool(read_only=True)
async def fail(text: str) -> str:
    """Fail."""
    raise ValueError(text)


@tool
async def write(text: str) -> str:
    """Change something."""
    return f"wrote {text}"


@pytest.mark.proves("K1", "K4", "E1")
async def test_an_answer_without_calls_ends_the_run() -> None:
    agent = an_agent(scripted([[say("Hello.")]]))

    events = await played(agent.run("Hi"))

    kinds = [type(event).__name__ for event in events]
    assert kinds == [
        "RunStarted", "RequestSent", "MessageStart", "BlockStart", "Delta", "BlockEnd", "BlockComplete", "MessageEnd",
        "MessageComplete", "RunEnded",
    ]  # fmt: skip
    ended = ending(events)
    assert (ended.move, ended.why, ended.text, ended.turns, ended.is_error) == (
        Move.STOPPED, Why.COMPLETED, "Hello.", 1, False,
    )  # fmt: skip
    assert roles(agent.messages) == ["user", "assistant"]


@pytest.mark.proves("K2", "K3", "E2", "E4", "F14")
async def test_results_go_back_and_the_model_is_asked_again() -> None:
    model = scripted([[say("I shout."), use("1", "shout", text="a")], [say("Done.")]])
    agent = an_agent(model, shout)

    events = await played(agent.run("Shout."))

    assert [(sent.turn, sent.why) for sent in only(events, RequestSent)] == [(1, Why.PROMPT), (2, Why.TOOL_RESULTS)]
    [started] = only(events, RunStarted)
    assert started.tools == ("shout",)
    assert agent.messages[1:3] == [
        AssistantMessage((Text("I shout."), ToolUse("1", "shout", {"text": "a"})), "scripted", "end_turn"),
        UserMessage((ToolResult("1", (Text("A"),)),)),
    ]
    assert ending(events).text == "Done."
    assert not refused(agent.messages)


@pytest.mark.proves("E1", "K4")
@pytest.mark.parametrize("stop_reason", ["end_turn", "stop", "max_tokens", "refusal", "pause_turn", ""])
async def test_calls_keep_the_loop_going_whatever_the_stop_reason_says(stop_reason: str) -> None:
    call = ToolUse("1", "shout", {"text": "a"})
    model = scripted([[call, MessageEnd(stop_reason)], [say("Done.")]])

    answer = await an_agent(model, shout).ask("Shout.")

    assert answer.text == "Done."


@pytest.mark.proves("E1", "K4")
async def test_a_stop_reason_that_promises_calls_does_not_keep_it_going() -> None:
    model = scripted([[say("No call after all."), MessageEnd("tool_use")]])

    assert (await an_agent(model, shout).ask("Hi")).turns == 1


@pytest.mark.proves("E3", "E7", "R11")
async def test_reads_start_and_finish_while_the_model_still_talks() -> None:
    slow, more = GatedTool("Slow"), asyncio.Event()
    model = scripted([[use("1", "Slow"), use("2", "shout", text="b"), gate(more), say("And so on.")], [say("End.")]])
    agent = an_agent(model, slow, shout)
    run = agent.run("Go.")
    seen: list[object] = []

    with anyio.fail_after(5):
        async for event in run:
            seen.append(event)
            if isinstance(event, CallFinished) and event.outcome.use.id == "2":
                assert slow.started == ["1"]
                assert not only(seen, MessageComplete)  # type: ignore[arg-type]
                slow.open_all("1")
            if isinstance(event, CallFinished) and event.outcome.use.id == "1":
                more.set()

    finished = [event.outcome.use.id for event in seen if isinstance(event, CallFinished)]
    assert finished == ["2", "1"]
    [results] = [event for event in seen if isinstance(event, ResultsComplete)]
    assert [outcome.use.id for outcome in results.outcomes] == ["1", "2"]


@pytest.mark.proves("E2", "K2")
async def test_blocks_that_arrive_side_by_side_are_called_in_the_order_of_the_answer() -> None:
    first, second = ToolUse("1", "write", {"text": "a"}), ToolUse("2", "write", {"text": "b"})
    script = [
        BlockStart(0, "tool_use", "1", "write"),
        BlockStart(1, "tool_use", "2", "write"),
        BlockEnd(1, second),
        BlockEnd(0, first),
    ]
    agent = an_agent(scripted([script, [say("Done.")]]), write)

    events = await played(agent.run("Go."))

    assert [event.use.id for event in only(events, CallQueued)] == ["1", "2"]
    [results] = only(events, ResultsComplete)
    assert [result.tool_use_id for result in results.message.content if isinstance(result, ToolResult)] == ["1", "2"]


async def test_a_refused_call_is_told_to_the_model_and_counted() -> None:
    agent = an_agent(scripted([[use("1", "write", text="a")], [say("Sorry.")]]), write)

    ended = ending(await played(agent.run("Write.")))

    assert [(denial.use.id, denial.use.name) for denial in ended.denials] == [("1", "write")]
    assert "there is no one to ask" in ended.denials[0].reason
    assert ended.move is Move.STOPPED
    assert not refused(agent.messages)


async def test_a_person_who_refuses_may_also_stop_the_run() -> None:
    from handrail import CarefulGate, Rails

    person = FixedApprover(allow=False, reason="no", interrupt=True)
    model = scripted([[use("1", "write", text="a"), use("2", "write", text="b")]])
    agent = an_agent(model, write, rails=Rails(CarefulGate(person)))

    ended = ending(await played(agent.run("Write.")))

    assert (ended.move, ended.why) == (Move.ABORTED, Why.ABORTED_TOOLS)
    assert roles(agent.messages) == ["user", "assistant", "results", "user"]
    assert not refused(agent.messages)


async def test_unknown_broken_and_failing_calls_get_error_results_and_the_run_goes_on() -> None:
    broken = BrokenToolUse("2", "shout", '{"text": ', "its JSON ends too early")
    script = [use("1", "Nope"), BlockEnd(7, broken), BlockEnd(8, ToolUse("3", "fail", {"text": "x"}))]
    agent = an_agent(scripted([script, [say("Done.")]]), shout, fail)

    events = await played(agent.run("Go."))

    [results] = only(events, ResultsComplete)
    assert [(o.use.id, o.status, o.cause) for o in results.outcomes] == [
        ("1", Status.ERROR, Cause.UNKNOWN_TOOL),
        ("2", Status.ERROR, Cause.INCOMPLETE),
        ("3", Status.ERROR, Cause.CRASHED),
    ]
    assert ending(events).text == "Done."
    assert not refused(agent.messages)


async def test_a_broken_call_alone_still_gets_its_result() -> None:
    broken = BrokenToolUse("1", "shout", "{", "it was cut off by the output limit")
    agent = an_agent(scripted([[BlockEnd(0, broken), MessageEnd("max_tokens")], [say("Done.")]]), shout)

    events = await played(agent.run("Go."))

    [results] = only(events, ResultsComplete)
    assert "cut off by the output limit" in results.outcomes[0].result.text
    assert ending(events).why is Why.COMPLETED


@pytest.mark.proves("R1")
async def test_call_ids_that_were_used_before_are_replaced() -> None:
    script = [[use("1", "shout", text="a"), use("1", "shout", text="b")], [use("1", "shout", text="c")], [say("Done.")]]
    agent = an_agent(scripted(script), shout)

    events = await played(agent.run("Go."))

    ids = [event.block.id for event in only(events, BlockComplete) if isinstance(event.block, ToolUse)]
    assert ids[0] == "1"
    assert len(set(ids)) == 3
    assert [event.use.id for event in only(events, CallStarted)] == ids
    assert not refused(agent.messages)


@pytest.mark.proves("K7", "A32")
async def test_what_tools_and_the_program_add_stands_after_all_results() -> None:
    @tool(read_only=True)
    async def remind(ctx: ToolContext) -> Output:
        """Bring a message along."""
        return Output(text="ok", messages=(Attachment("from_tool", (Text("By the way."),)), SystemNote("for people")))

    def reminders(outcomes: Sequence[Outcome]) -> list[Attachment]:
        return [Attachment("reminder", (Text("Mind the gap."),))]

    model = scripted([[use("1", "remind"), use("2", "shout", text="b")], [say("Done.")]])
    agent = an_agent(model, remind, shout, attach=reminders, opening=lambda: [Attachment("facts", (Text("Monday"),))])

    events = await played(agent.run("Go."))

    assert roles(agent.messages) == [
        "facts", "user", "reminder", "assistant", "results", "from_tool", "note", "reminder", "assistant",
    ]  # fmt: skip
    added = [event.message.kind for event in only(events, MessageAdded) if isinstance(event.message, Attachment)]
    assert added == ["facts", "reminder", "from_tool", "reminder"]
    assert not refused(agent.messages)


@pytest.mark.proves("A32", "R1")
async def test_a_tool_may_bring_words_of_the_model_and_the_next_request_still_ends_with_the_user() -> None:
    @tool(read_only=True)
    async def recall() -> Output:
        """Bring an old answer along."""
        return Output(text="ok", messages=(AssistantMessage((Text("I once said so."),)),))

    agent = an_agent(scripted([[use("1", "recall")], [say("Done.")]]), recall)

    await agent.ask("Go.")

    assert roles(agent.messages) == ["user", "assistant", "results", "assistant", "go_on", "assistant"]
    assert not refused(agent.messages)


async def test_an_empty_answer_is_asked_for_once_more() -> None:
    agent = an_agent(scripted([[], [say("Here.")]]))

    events = await played(agent.run("Hi"))

    assert [sent.why for sent in only(events, RequestSent)] == [Why.PROMPT, Why.EMPTY_ANSWER]
    assert roles(agent.messages) == ["user", "empty_answer", "assistant"]
    assert ending(events).text == "Here."


async def test_two_empty_answers_in_a_row_are_taken_as_the_end() -> None:
    agent = an_agent(scripted([[say(" ")], []]))

    ended = ending(await played(agent.run("Hi")))

    assert (ended.why, ended.text.strip(), ended.turns) == (Why.COMPLETED, "", 2)
    assert not refused(agent.messages)


async def test_a_pause_of_the_vendor_is_continued_with_nothing_added() -> None:
    searching = ServerBlock(
        "server_tool_use", {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    )
    script = [[BlockEnd(0, searching), MessageEnd("pause_turn")], [say("Found.")]]
    agent = an_agent(scripted(script), attach=lambda _: [Attachment("reminder", (Text("x"),))])

    events = await played(agent.run("Search."))

    assert [sent.why for sent in only(events, RequestSent)] == [Why.PROMPT, Why.PAUSED]
    assert roles(agent.messages) == ["user", "reminder", "assistant", "assistant"]


async def test_text_that_was_cut_off_is_continued_a_few_times() -> None:
    cut = [say("more and "), MessageEnd("max_tokens")]
    agent = an_agent(scripted([cut, cut, cut, cut]))

    events = await played(agent.run("Tell me everything."))

    assert [sent.why for sent in only(events, RequestSent)] == [Why.PROMPT, *[Why.CUT_ANSWER] * 3]
    assert (ending(events).move, ending(events).why) == (Move.ERROR, Why.CUT_ANSWERS)
    assert ending(events).text == "more and " * 4


async def test_a_refusal_of_the_model_ends_the_run_as_such() -> None:
    ended = ending(await played(an_agent(scripted([[say("I will not."), MessageEnd("refusal")]])).run("Hi")))

    assert (ended.move, ended.why, ended.stop_reason) == (Move.STOPPED, Why.REFUSED, "refusal")


@pytest.mark.proves("K6")
async def test_a_failure_nobody_can_answer_ends_the_run_and_the_conversation_goes_on() -> None:
    failure = StreamFailure("authentication_error", "the key is wrong", retryable=False, status=401)
    agent = an_agent(scripted([[failure], [say("Hello.")]]))

    with pytest.raises(RunError, match=r"the model could not answer: the key is wrong \(status 401\)") as raised:
        await agent.ask("Hi")

    assert getattr(raised.value.ended, "failure") == failure  # noqa: B009
    assert (await agent.ask("Again?")).text == "Hello."
    assert not refused(agent.messages)


async def test_what_was_said_before_a_final_failure_is_kept_with_results() -> None:
    failure = StreamFailure("bad", "no", retryable=False)
    agent = an_agent(scripted([[say("I look."), use("1", "shout", text="a"), failure]]), shout)

    ended = ending(await played(agent.run("Hi")))

    assert ended.why is Why.MODEL_FAILED
    assert roles(agent.messages) == ["user", "assistant", "results"]
    assert not refused(agent.messages)


async def test_a_model_that_raises_raises_here_and_leaves_a_good_history() -> None:
    agent = an_agent(scripted([[use("1", "shout", text="a")]]), shout)

    with pytest.raises(LookupError):
        await played(agent.run("Hi"))

    assert roles(agent.messages) == ["user", "assistant", "results"]
    assert not agent.running


@pytest.mark.proves("E4", "R1")
async def test_fifty_turns() -> None:
    script = [*([use(str(n), "shout", text=str(n))] for n in range(50)), [say("Done.")]]
    agent = an_agent(scripted(script), shout)

    ended = ending(await played(agent.run("Go.")))

    assert (ended.turns, ended.text) == (51, "Done.")
    assert len(agent.messages) == 1 + 2 * 50 + 1
    assert not refused(agent.messages)


async def test_several_prompts_are_one_conversation() -> None:
    model = scripted([[say("One.")], [say("Two.")]])
    agent = an_agent(model)

    assert [(await agent.ask("1?")).text, (await agent.ask("2?")).text] == ["One.", "Two."]
    assert roles(agent.messages) == ["user", "assistant", "user", "assistant"]


async def test_partial_text_reaches_the_reader_as_it_comes() -> None:
    script = [
        MessageStart("m1", "x"),
        BlockStart(0, "text"),
        Delta(0, "He"),
        Delta(0, "llo"),
        BlockEnd(0, Text("Hello")),
    ]
    events = await played(an_agent(scripted([script])).run("Hi"))

    assert [event.text for event in only(events, Delta)] == ["He", "llo"]
    [block] = only(events, BlockComplete)
    assert (block.message_id, block.model, block.block) == ("m1", "x", Text("Hello"))
