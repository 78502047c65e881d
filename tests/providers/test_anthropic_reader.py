"""Answers in the Messages format, the odd ones too, each on real bytes."""

import json
from typing import Any

import pytest

from handrail.conversation.blocks import BrokenToolUse, ServerBlock, Text, Thinking, ToolUse
from handrail.conversation.stream import BlockEnd, Usage
from handrail.providers.anthropic_reader import AnthropicReader
from tests.providers.reading import Seen, read


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def begin(index: int, **block: Any) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def more(index: int, kind: str, **fields: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def part(index: int, text: str) -> bytes:
    return more(index, "input_json_delta", partial_json=text)


def stop(index: int) -> bytes:
    return event("content_block_stop", index=index)


def ending(reason: str | None) -> bytes:
    return event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 5}) + event("message_stop")


START = event(
    "message_start", message={"id": "m1", "model": "claude", "usage": {"input_tokens": 2, "output_tokens": 1}}
)
TOOL = begin(0, type="tool_use", id="a", name="Read", input={})


def answer(*events: bytes, reason: str = "tool_use") -> Seen:
    return read("anthropic", [START, *events, ending(reason)])


@pytest.mark.proves("E3", "R11")
def test_a_call_is_announced_at_its_block_stop_and_not_when_its_json_parses() -> None:
    reader = AnthropicReader()
    reader.feed(START + TOOL)

    assert not any(isinstance(e, BlockEnd) for e in reader.feed(part(0, '{"p":1}')))
    assert reader.feed(stop(0)) == [BlockEnd(0, ToolUse("a", "Read", {"p": 1}))]


def test_a_call_without_input_is_announced_when_the_next_block_begins() -> None:
    reader = AnthropicReader()
    reader.feed(START + TOOL + part(0, ""))

    assert not any(isinstance(e, BlockEnd) for e in reader.feed(stop(0)))
    assert BlockEnd(0, ToolUse("a", "Read", {})) in reader.feed(begin(1, type="text", text=""))


@pytest.mark.parametrize(
    ("events", "reason", "expected"),
    [
        pytest.param([TOOL, stop(0)], "tool_use", ToolUse("a", "Read", {}), id="no fragment"),
        pytest.param([TOOL, part(0, ""), stop(0)], "tool_use", ToolUse("a", "Read", {}), id="an empty fragment"),
        pytest.param(
            [begin(0, type="tool_use", id="a", name="Read", input={"p": 1}), stop(0)],
            "tool_use",
            ToolUse("a", "Read", {"p": 1}),
            id="the whole input at the start",
        ),
        pytest.param([TOOL, part(0, '{"p":1}')], "tool_use", ToolUse("a", "Read", {"p": 1}), id="no block stop"),
        pytest.param(
            [begin(0, type="tool_use", name="Read"), part(0, "{}"), stop(0)],
            "end_turn",
            ToolUse("new-1", "Read", {}),
            id="no id, and a stop reason that denies it",
        ),
        pytest.param(
            [
                begin(0, type="tool_use", id="a", name="Read", caller={"type": "code", "id": "s"}),
                part(0, "{}"),
                stop(0),
            ],
            "tool_use",
            ToolUse("a", "Read", {}, {"caller": {"type": "code", "id": "s"}}),
            id="a caller is kept for the way back",
        ),
    ],
)
def test_whole_calls(events: list[bytes], reason: str, expected: ToolUse) -> None:
    assert answer(*events, reason=reason).content == [expected]


@pytest.mark.parametrize(
    ("events", "reason", "problem"),
    [
        pytest.param([TOOL, part(0, '{"p":'), stop(0)], "max_tokens", "not valid JSON", id="cut, with a block stop"),
        pytest.param([TOOL, part(0, '{"p":')], "max_tokens", "output limit", id="cut, without a block stop"),
        pytest.param([TOOL, stop(0)], "max_tokens", "output limit", id="cut before its input"),
        pytest.param([TOOL, part(0, ""), stop(0)], "model_context_window_exceeded", "output limit", id="window full"),
        pytest.param([TOOL, part(0, "[]"), stop(0)], "tool_use", "JSON list", id="not an object"),
        pytest.param([TOOL, part(0, '{"p":1}{'), stop(0)], "tool_use", "not valid JSON", id="more than one value"),
    ],
)
def test_broken_calls(events: list[bytes], reason: str, problem: str) -> None:
    (call,) = answer(*events, reason=reason).content

    assert isinstance(call, BrokenToolUse)
    assert problem in call.problem


@pytest.mark.proves("E2")
def test_blocks_may_overlap() -> None:
    seen = answer(
        TOOL,
        begin(1, type="text", text=""),
        part(0, '{"p"'),
        more(1, "text_delta", text="Hi"),
        part(0, ":1}"),
        stop(1),
        stop(0),
    )

    assert seen.content == [ToolUse("a", "Read", {"p": 1}), Text("Hi")]


def test_thinking_keeps_its_signature_and_redacted_thinking_its_data() -> None:
    seen = answer(
        begin(0, type="thinking", thinking="", signature=""),
        more(0, "thinking_delta", thinking="hm"),
        more(0, "signature_delta", signature="sig"),
        stop(0),
        begin(1, type="redacted_thinking", data="xyz"),
        stop(1),
        reason="end_turn",
    )

    assert seen.content == [
        Thinking("hm", {"type": "thinking", "thinking": "hm", "signature": "sig"}),
        Thinking("", {"type": "redacted_thinking", "data": "xyz"}),
    ]


def test_what_the_server_ran_is_kept_and_never_a_call() -> None:
    seen = answer(
        begin(0, type="server_tool_use", id="s", name="web_search", input={}),
        part(0, '{"q":1}'),
        stop(0),
        begin(1, type="web_search_tool_result", tool_use_id="s", content=[]),
        stop(1),
        begin(2, type="something_new", value=3),
        more(2, "something_delta", value=4),
        stop(2),
        event("something_else"),
    )

    assert seen.calls == []
    assert seen.content == [
        ServerBlock("server_tool_use", {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}}),
        ServerBlock("web_search_tool_result", {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}),
        ServerBlock("something_new", {"type": "something_new", "value": 3}),
    ]


def test_usage_is_overwritten_and_not_added() -> None:
    seen = answer(reason="end_turn")

    assert seen.usage == Usage(input_tokens=2, output_tokens=5)


@pytest.mark.parametrize(
    ("events", "kind", "retryable"),
    [
        pytest.param(
            [START, event("error", error={"type": "overloaded_error", "message": "busy"})],
            "overloaded_error",
            True,
            id="overload",
        ),
        pytest.param(
            [START, event("error", error={"type": "invalid_request_error", "message": "no"})],
            "invalid_request_error",
            False,
            id="a request that is wrong",
        ),
        pytest.param([START, TOOL, part(0, '{"p":1}'), stop(0)], "cut", True, id="cut after a whole block"),
        pytest.param([START, TOOL, part(0, "{}")[:-9]], "malformed", True, id="cut inside an event"),
        pytest.param([b"<html>502</html>"], "not_an_api", False, id="not a stream at all"),
    ],
)
def test_a_failing_stream_says_so(events: list[bytes], kind: str, retryable: bool) -> None:
    failure = read("anthropic", events).failure

    assert failure is not None
    assert (failure.kind, failure.retryable) == (kind, retryable)


def test_a_stop_reason_without_message_stop_is_an_end() -> None:
    body = event("message_delta", delta={"stop_reason": "end_turn"})

    assert read("anthropic", [START, begin(0, type="text", text="Hi"), stop(0), body]).content == [Text("Hi")]


def test_type_may_stand_in_the_event_name_alone() -> None:
    body = b'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"}}\n\nevent: message_stop\ndata: {}\n\n'

    end = read("anthropic", [START, body]).end
    assert end is not None
    assert end.stop_reason == "end_turn"


def test_a_refusal_says_why() -> None:
    details = {"type": "refusal", "explanation": "Not allowed."}
    body = event("message_delta", delta={"stop_reason": "refusal", "stop_details": details}) + event("message_stop")

    end = read("anthropic", [START, body]).end
    assert end is not None
    assert (end.stop_reason, end.detail) == ("refusal", "Not allowed.")


@pytest.mark.proves("K8")
def test_the_non_streaming_form_gives_the_same_events() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    body = {
        "type": "message",
        "id": "m1",
        "model": "claude",
        "content": [
            thinking,
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "a", "name": "Read", "input": {"p": 1}},
            {"type": "tool_use", "id": "b", "name": "Now", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    seen = read("anthropic", [json.dumps(body).encode()])

    assert seen.content == [
        Thinking("hm", thinking),
        Text("Hi"),
        ToolUse("a", "Read", {"p": 1}),
        ToolUse("b", "Now", {}),
    ]
    assert seen.usage == Usage(input_tokens=3, output_tokens=4)


def test_words_without_a_block_start_are_still_words() -> None:
    body = more(0, "text_delta", text="Hi") + stop(0)

    assert answer(body, reason="end_turn").content == [Text("Hi")]


def test_arguments_without_a_block_start_are_nobodys() -> None:
    assert answer(part(3, "{}"), stop(3), reason="end_turn").content == []


def test_events_without_an_index_speak_of_the_last_block() -> None:
    delta = {"type": "input_json_delta", "partial_json": '{"p":1}'}
    body = [TOOL, event("content_block_delta", delta=delta), event("content_block_stop")]

    assert answer(*body).content == [ToolUse("a", "Read", {"p": 1})]


def test_an_object_where_a_fragment_belongs_is_taken_as_it_is() -> None:
    body = more(0, "input_json_delta", partial_json={"p": 1})

    assert answer(TOOL, body, stop(0)).content == [ToolUse("a", "Read", {"p": 1})]
