"""From the records of a session to a history that a strict model accepts, whatever the file holds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.conversation.blocks import (
    BrokenToolUse,
    Document,
    Image,
    ServerBlock,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.conversation.redact import Redactor
from handrail.conversation.request import History
from handrail.transcripts.log import BrokenLine, Log, read
from handrail.transcripts.rebuild import NEVER_STARTED, UNKNOWN, RebuiltTranscript, rebuild
from handrail.transcripts.writer import TranscriptWriter

PROMPT = UserMessage((Text("go"),))
A, B = ToolUse("a", "Read", {"file_path": "x"}), ToolUse("b", "Bash", {"command": "make"})


def scribe(path: Path, **more: object) -> TranscriptWriter:
    return TranscriptWriter(Log(path), "s1", "/proj", Redactor(), **more)  # type: ignore[arg-type]


def result(call: ToolUse, text: str = "done") -> ToolResult:
    return ToolResult(call.id, (Text(text),))


def rebuilt(path: Path) -> RebuiltTranscript:
    made = rebuild(read(path))
    History(made.messages)  # raises when calls and results do not pair
    return made


def told(path: Path, answer: Sequence[ToolUse | Text]) -> TranscriptWriter:
    """A session that was stopped right after these blocks arrived."""
    writer = scribe(path)
    writer.add_message(PROMPT)
    for slot, block in enumerate(answer):
        writer.add_block("m1", "model-x", block, slot)
    return writer


def test_what_was_said_comes_back_as_it_was(tmp_path: Path) -> None:
    said: list[Message] = [
        Attachment("facts", (Text("cwd is /proj"),)),
        UserMessage((Text("look"), Image("aGk=", "image/png"), Document("aGk=", "application/pdf", "a title"))),
        AssistantMessage(
            (Thinking("hm", {"type": "thinking", "thinking": "hm", "signature": "s"}), A), "m", "tool_use"
        ),
        UserMessage((ToolResult("a", (Text("1"), Image("aGk=", "image/png"), ToolReference("Web")), is_error=True),)),
        AssistantMessage(
            (
                Thinking("own", {"type": "reasoning", "id": "r"}),
                Thinking("plain"),
                ServerBlock("server_tool_use", {"type": "server_tool_use", "id": "z"}),
                ToolUse("c", "X", {"n": 1}, {"signature": "t"}),
                BrokenToolUse("d", "Y", '{"a', "it was cut off"),
            ),
            "m",
            "tool_use",
        ),
        UserMessage((ToolResult("c", ()), ToolResult("d", (Text("no"),), is_error=True))),
        SystemNote("compacting soon", "warning"),
        AssistantMessage((Text("lone \ud800 surrogate"),), "m", "end_turn"),
    ]
    writer = scribe(tmp_path / "s1.jsonl")
    for message in said:
        writer.add_message(message)
    writer.close()

    assert rebuilt(tmp_path / "s1.jsonl").messages == tuple(said)


@pytest.mark.proves("R1", "R13")
@pytest.mark.parametrize(
    ("began", "ended", "expected"),
    [
        pytest.param([], [], [NEVER_STARTED, NEVER_STARTED], id="nothing had started"),
        pytest.param(["a"], [], [UNKNOWN, NEVER_STARTED], id="one was running"),
        pytest.param(["b", "a"], ["b"], [UNKNOWN, "done"], id="the second had finished, the first had not"),
        pytest.param(["a", "b"], ["b", "a"], ["done", "done"], id="both had finished, in the other order"),
    ],
)
def test_an_unanswered_call_gets_a_result_that_says_what_is_known(
    tmp_path: Path, began: list[str], ended: list[str], expected: list[str]
) -> None:
    calls = {"a": A, "b": B}
    writer = told(tmp_path / "s.jsonl", [Text("I look"), A, B])
    for call in began:
        writer.start_call(calls[call])
    for call in ended:
        writer.end_call(result(calls[call]))

    made = rebuilt(tmp_path / "s.jsonl")

    assert made.messages[:2] == (PROMPT, AssistantMessage((Text("I look"), A, B), "model-x"))
    results = made.messages[2]
    assert isinstance(results, UserMessage)
    assert [block.text for block in results.content if isinstance(block, ToolResult)] == expected
    assert made.repairs


def test_an_answer_that_settled_differently_than_it_was_heard_counts_as_it_settled(tmp_path: Path) -> None:
    writer = told(tmp_path / "s.jsonl", [Text("I look"), A])
    shorter = AssistantMessage((Text("I look"), Text("and was inter")), "model-x")
    writer.add_message(shorter)

    assert rebuilt(tmp_path / "s.jsonl").messages == (PROMPT, shorter)


@pytest.mark.proves("R13")
def test_calls_of_an_answer_that_was_given_up_are_told_to_the_model_and_not_lost(tmp_path: Path) -> None:
    writer = told(tmp_path / "s.jsonl", [A, B])
    writer.start_call(B)
    writer.discard_blocks()

    made = rebuilt(tmp_path / "s.jsonl")

    assert made.messages == (PROMPT,)
    assert made.note is not None
    assert "Bash (b): what it did is not known" in made.note.content[0].text  # type: ignore[union-attr]


def test_compaction_keeps_what_stayed_by_name_only(tmp_path: Path) -> None:
    writer = scribe(tmp_path / "s.jsonl")
    old: list[Message] = [PROMPT, AssistantMessage((A,), "m"), UserMessage((result(A, "long " * 1000),))]
    for message in old:
        writer.add_message(message)
    before = (tmp_path / "s.jsonl").stat().st_size
    new = [old[0], old[1], UserMessage((result(A, "stub"),))]
    writer.replace_messages(new)
    writer.add_message(AssistantMessage((Text("next"),), "m"))

    assert rebuilt(tmp_path / "s.jsonl").messages == (*new, AssistantMessage((Text("next"),), "m"))
    assert (tmp_path / "s.jsonl").stat().st_size - before < 1000


def test_a_resumed_session_goes_on_where_it_was_mended(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    told(path, [A]).close()
    first = rebuilt(path)
    writer = scribe(path, kept=first.messages, last=first.last)
    writer.add_message(UserMessage((Text("and now"),)))
    writer.replace_messages([first.messages[0], *first.messages[1:], UserMessage((Text("and now"),))])
    writer.close()

    again = rebuilt(path)

    assert again.messages == (*first.messages, UserMessage((Text("and now"),)))


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """What may happen in a session, in orders that a program can bring about."""
    steps: list[tuple[str, Any]] = []
    for turn in range(draw(st.integers(1, 4))):
        steps.append(("add_message", UserMessage((Text(f"prompt {turn}"),))))
        calls = [ToolUse(f"{turn}.{n}", "Bash", {}) for n in range(draw(st.integers(0, 3)))]
        answer: list[Text | ToolUse] = [Text(f"answer {turn}"), *calls]
        steps += [("add_block", (slot, block)) for slot, block in enumerate(answer)]
        began = draw(st.lists(st.sampled_from(calls), unique_by=lambda call: call.id)) if calls else []
        steps += [("start_call", call) for call in began]
        steps += [("end_call", result(call)) for call in (draw(st.permutations(calls)) if calls else [])]
        if draw(st.booleans()):
            steps.append(("add_message", AssistantMessage(tuple(answer), "m", "x")))
            if calls:
                steps.append(("add_message", UserMessage(tuple(result(call) for call in calls))))
        else:
            steps.append(("discard_blocks", None))
    return steps


@pytest.mark.proves("R1", "R13")
@given(stories(), st.integers(0, 60), st.integers(0, 400))
@settings(deadline=None)
def test_a_session_cut_anywhere_resumes_into_a_sound_history(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]], upto: int, torn: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "s.jsonl"
    writer = scribe(path)
    shown: list[str] = []
    for what, value in steps[:upto]:
        match what, value:
            case "add_block", (slot, block):
                writer.add_block("m", "m", block, slot)
            case "discard_blocks", _:
                writer.discard_blocks()
            case _:
                getattr(writer, what)(value)
        if what == "add_message" and isinstance(value, UserMessage) and isinstance(value.content[0], Text):
            shown.append(value.content[0].text)
    writer.close()
    whole = path.read_bytes() if path.exists() else b""
    kept = max(whole.rfind(b"\n") + 1, len(whole) - torn) if torn < 3 else len(whole)
    path.write_bytes(whole[:kept] + b'{"type":"user","mess'[: torn % 20])

    made = rebuild(read(path))

    History(made.messages)
    texts = json.dumps([str(message) for message in made.messages])
    assert all(text in texts for text in shown)
    assert Log(path).path == path  # it can be written again


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["type", "message", "content", "event", "uuid", "parentUuid", "id", "name", "role", "slot", "messages", "keep"]
TYPES = ["user", "assistant", "system", "summary", "handrail", "tool_use", "tool_result", "text", "replaced", "settled"]
hostile = st.dictionaries(
    st.sampled_from(KEYS),
    st.sampled_from(TYPES) | json_values | st.dictionaries(st.sampled_from(KEYS), json_values, max_size=4),
)


@given(st.lists(hostile | st.builds(BrokenLine, st.integers(), st.text()), max_size=12))
@settings(deadline=None, max_examples=settings().max_examples // 2)
def test_no_content_of_a_file_makes_an_unsound_history(records: list[dict[str, object] | BrokenLine]) -> None:
    lines = [each if isinstance(each, BrokenLine) else {"type": "user", **each} for each in records]
    kept = [each for each in lines if isinstance(each, BrokenLine) or isinstance(each["type"], str)]

    History(rebuild(kept).messages)


def _line(uuid: str, parent: str | None, kind: str, content: object, **message: object) -> dict[str, object]:
    said = {"role": kind, "content": content, **message}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "cwd": "/w", "message": said}


def _called(call_id: str) -> list[dict[str, object]]:
    return [{"type": "tool_use", "id": call_id, "name": "Read", "input": {}}]


def _answered(call_id: str, text: str) -> list[dict[str, object]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": text}]


FOREIGN: list[dict[str, object]] = [
    {"type": "summary", "summary": "A talk"},
    _line("1", None, "user", "hi"),
    _line("2", "1", "assistant", _called("t1"), id="m", model="x"),
    _line("3", "2", "user", _answered("t1", "one")),
    _line("4", "3", "assistant", _called("t2"), id="m", model="x"),
    {**_line("s", None, "user", "of a sub-agent"), "isSidechain": True},
    _line("5", "4", "user", _answered("t2", "two")),
    _line("6", "5", "assistant", [{"type": "text", "text": "bye"}], id="n", model="x"),
    {"type": "file-history-snapshot", "snapshot": {}},
]


def test_a_transcript_of_another_program_is_understood(tmp_path: Path) -> None:
    made = rebuild(iter(FOREIGN))

    History(made.messages)
    assert (made.title, made.cwd, made.model) == ("A talk", "/w", "x")
    assert made.messages == (
        UserMessage((Text("hi"),)),
        AssistantMessage((ToolUse("t1", "Read", {}), ToolUse("t2", "Read", {})), "x"),
        UserMessage((ToolResult("t1", (Text("one"),)), ToolResult("t2", (Text("two"),)))),
        AssistantMessage((Text("bye"),), "x"),
    )
    assert not made.problems


def test_a_prompt_that_refers_to_an_earlier_line_takes_the_place_of_what_followed_it() -> None:
    made = rebuild([*FOREIGN, _line("9", "1", "user", "rather this")])

    assert made.messages == (UserMessage((Text("hi"),)), UserMessage((Text("rather this"),)))


def test_a_conversation_can_be_taken_up_at_an_earlier_message() -> None:
    made = rebuild(FOREIGN, upto="5")

    assert [type(message) for message in made.messages] == [UserMessage, AssistantMessage, UserMessage]
    assert rebuild(FOREIGN, upto="nowhere").problems == ("there is no message 'nowhere'",)
