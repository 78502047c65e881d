"""Conversations that are kept: what is shown is on disk before it is shown, and the next run goes on from it."""

import json
from pathlib import Path

import pytest

from handrail import Rails, tool
from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.messages import UserMessage
from handrail.conversation.redact import Redactor
from handrail.conversation.stream import Delta, StreamFailure
from handrail.dispatch.gate import CarefulGate
from handrail.errors import SessionError
from handrail.loop.events import BlockComplete, RequestSent, ResultsComplete, RunStarted
from handrail.testing import say, use
from handrail.tools.events import CallFinished
from handrail.transcripts.log import read
from handrail.transcripts.rebuild import rebuild
from handrail.transcripts.store import TranscriptStore
from handrail.transcripts.writer import message_value
from tests.scenarios.playing import an_agent, played, refused, scripted

pytestmark = pytest.mark.anyio

TRUSTING = Rails(CarefulGate(trusting=True))


@pytest.fixture
def store(tmp_path: Path) -> TranscriptStore:
    return TranscriptStore(tmp_path / "sessions", Redactor())


@tool
async def note(text: str) -> str:
    """Write something down."""
    return f"noted {text}"


@pytest.mark.proves("R13")
async def test_the_next_run_goes_on_with_the_same_conversation(store: TranscriptStore) -> None:
    opened = store.create("/proj", "one")
    model = scripted([[say("I note it."), use("a", "note", text="x")], [say("Done.")]])
    agent = an_agent(model, note, rails=TRUSTING, session=opened)
    await played(agent.run("Note x"))
    opened.writer.close()

    again = store.resume(opened.path, "/proj")
    later = scripted([[say("As I said.")]])
    other = an_agent(later, note, rails=TRUSTING, session=again)

    assert tuple(other.messages) == tuple(agent.messages)
    assert not again.rebuilt.repairs
    await played(other.run("And?"))
    assert not refused(other.messages)
    assert rebuild(read(again.path)).messages == tuple(other.messages)


@pytest.mark.proves("R13")
async def test_whatever_is_shown_has_been_written_before(store: TranscriptStore) -> None:
    opened = store.create("/proj", "one")
    model = scripted(
        [[say("first words"), use("a", "note", text="x"), use("b", "note", text="y")], [say("last words")]]
    )
    agent = an_agent(model, note, rails=TRUSTING, session=opened)
    shown = 0
    async for event in agent.run("the prompt"):
        kept = rebuild(read(opened.path))
        assert not refused(kept.messages)
        match event:
            case BlockComplete(block=Text(text)):
                assert text in opened.path.read_text()
                shown += 1
            case CallFinished(outcome=outcome):
                results = [
                    block
                    for message in kept.messages
                    if isinstance(message, UserMessage)
                    for block in message.content
                    if isinstance(block, ToolResult)
                ]
                assert outcome.result in results
                shown += 1
            case _:
                pass
    assert shown == 4


@pytest.mark.proves("R13", "R1")
async def test_a_file_that_ends_at_any_byte_still_holds_what_was_shown_by_then(store: TranscriptStore) -> None:
    opened = store.create("/proj", "one")
    failure = StreamFailure("cut", "gone", retryable=True)
    script = [
        [say("half of it"), use("x", "note", text="given up"), failure],
        [say("first words"), use("a", "note", text="x"), use("b", "note", text="y")],
        [say("last words")],
    ]
    agent = an_agent(scripted(script), note, rails=TRUSTING, session=opened)
    shown: list[tuple[int, str]] = []
    async for event in agent.run("the prompt"):
        size = opened.path.stat().st_size
        match event:
            case BlockComplete(block=Text(text)):
                shown.append((size, text))
            case CallFinished(outcome=outcome):
                shown.append((size, outcome.result.text))
            case _:
                pass
    whole = opened.path.read_bytes()
    opened.writer.close()
    torn = opened.path.with_name("torn.jsonl")
    given_up = whole.index(b"\n", whole.index(b'"discarded"')) + 1  # from here on the words of that answer are void

    before: tuple[object, object] = ((), None)
    told = ""
    for end in (at for at in range(len(whole) + 1) if at % 7 == 0 or b"\n" in whole[max(at - 3, 0) : at + 3]):
        torn.write_bytes(whole[:end])
        made = rebuild(read(torn))
        if (made.messages, made.note) != before:
            before = (made.messages, made.note)
            assert not refused(made.messages)
            told = json.dumps([message_value(message) for message in (*made.messages, *filter(None, (made.note,)))])
        lost = [text for size, text in shown if size <= end and text not in told and not size <= given_up <= end + 1]
        assert lost == [], end


async def test_a_session_that_cannot_be_written_stops_the_run_before_anything_more_is_shown_or_done(
    store: TranscriptStore,
) -> None:
    ran: list[str] = []

    @tool
    async def act(text: str) -> str:
        """Change something."""
        ran.append(text)
        return "done"

    opened = store.create("/proj", "one")
    agent = an_agent(scripted([[say("well"), use("a", "act", text="x")]]), act, rails=TRUSTING, session=opened)
    run = agent.run("go")
    opened.writer.failure = SessionError("the disk is full")

    with pytest.raises(SessionError, match="the disk is full"):
        await played(run)

    assert ran == []


@pytest.mark.parametrize("last", [RunStarted, RequestSent, Delta, ResultsComplete])
async def test_events_that_wait_to_be_read_are_not_shown_once_the_session_cannot_be_written(
    store: TranscriptStore, last: type[object]
) -> None:
    opened = store.create("/proj", "one")
    model = scripted([[say("well"), use("a", "note", text="x")], [say("end")]])
    run = an_agent(model, note, rails=TRUSTING, session=opened).run("go")
    while not isinstance(await anext(run), last):
        pass

    opened.writer.failure = SessionError("the disk is full")

    with pytest.raises(SessionError, match="the disk is full"):
        await anext(run)
    assert [event async for event in run] == []


async def test_an_answer_that_is_asked_for_again_leaves_no_trace_of_its_words(store: TranscriptStore) -> None:
    opened = store.create("/proj", "one")
    failure = StreamFailure("cut", "gone", retryable=True)
    model = scripted([[say("half"), use("a", "note", text="x"), failure], [say("whole")], [say("end")]])
    agent = an_agent(model, note, rails=TRUSTING, session=opened)

    await played(agent.run("go"))

    assert rebuild(read(opened.path)).messages == tuple(agent.messages)


async def test_a_kept_conversation_costs_one_line_for_each_thing_that_happened(store: TranscriptStore) -> None:
    opened = store.create("/proj", "one")
    agent = an_agent(scripted([[use("a", "note", text="x")], [say("Done.")]]), note, rails=TRUSTING, session=opened)

    await played(agent.run("go"))

    kinds = [f"{line['type']} {line.get('event', '')}".strip() for line in read(opened.path) if isinstance(line, dict)]
    assert kinds == [
        "handrail opened", "user",
        "handrail requested", "assistant", "handrail answered", "handrail began", "user", "handrail settled",
        "handrail requested", "assistant", "handrail answered", "handrail settled",
        "handrail ended",
    ]  # fmt: skip
