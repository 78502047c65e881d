"""What servers that imitate chat.completions do to calls, each on real bytes."""

import json
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from handrail.conversation.blocks import BrokenToolUse, Text, Thinking, ToolUse
from handrail.conversation.stream import BlockEnd, StreamEvent, StreamFailure
from handrail.providers.openai_chat_reader import ChatReader
from tests.providers.reading import Seen, numbered, read

pytestmark = pytest.mark.proves("E36")

TOOLS = frozenset({"Read", "Bash", "get_time"})
DONE = b"data: [DONE]\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **rest: Any) -> bytes:
    body = {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **rest}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def piece(**fields: Any) -> dict[str, Any]:
    """One entry of tool_calls; `name` and `args` go into its function object."""
    names = {"name": "name", "args": "arguments"}
    function = {names[key]: fields.pop(key) for key in ("name", "args") if key in fields}
    return {**fields, "function": function}


def calls(*chunks: list[dict[str, Any]], finish: str = "tool_calls") -> Seen:
    """An answer whose chunks hold these tool_calls lists."""
    body = [chunk({"tool_calls": entries}) for entries in chunks]
    return read("openai-chat", [*body, chunk(finish=finish), DONE], tools=TOOLS)


READ_A = ToolUse("a", "Read", {"p": 1})
BASH_B = ToolUse("b", "Bash", {"c": 2})


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param(
            [
                [piece(index=0, id="a", name="Read", args="")],
                [piece(index=0, args='{"p"')],
                [piece(index=0, args=":1}")],
            ],
            [READ_A],
            id="the norm",
        ),
        pytest.param(
            [[piece(id="a", name="Read", args='{"p":1}')], [piece(id="b", name="Bash", args='{"c":2}')]],
            [READ_A, BASH_B],
            id="no index, a new id begins a new call",
        ),
        pytest.param(
            [
                [piece(id="a", name="Read", args='{"p"')],
                [piece(args=":1}")],
                [piece(id="b", name="Bash", args='{"c":2}')],
            ],
            [READ_A, BASH_B],
            id="no index, a piece without id continues the last call",
        ),
        pytest.param(
            [[piece(name="Read", args='{"p":1}')], [piece(name="Read", args='{"p":2}')]],
            [ToolUse("new-1", "Read", {"p": 1}), ToolUse("new-2", "Read", {"p": 2})],
            id="no index and no id, a name after whole arguments begins a new call",
        ),
        pytest.param(
            [[piece(name="get_time"), piece(name="get_time")]],
            [ToolUse("new-1", "get_time", {}), ToolUse("new-2", "get_time", {})],
            id="no index and no id, two entries of one chunk are two calls",
        ),
        pytest.param(
            [
                [piece(id="a", name="Read", args=""), piece(id="b", name="Bash", args="")],
                [piece(args='{"p":1}'), piece(args='{"c":2}')],
            ],
            [READ_A, BASH_B],
            id="no index, several entries go by their place",
        ),
        pytest.param(
            [
                [piece(index=0, id="a", name="Read", args='{"p":1}')],
                [piece(index=0, id="b", name="Bash", args='{"c":2}')],
            ],
            [READ_A, BASH_B],
            id="every call has index 0",
        ),
        pytest.param(
            [[piece(index=0, name="Read", args='{"p":1}')], [piece(index=0, name="Bash", args='{"c":2}')]],
            [ToolUse("new-1", "Read", {"p": 1}), ToolUse("new-2", "Bash", {"c": 2})],
            id="every call has index 0 and none an id",
        ),
        pytest.param(
            [
                [piece(index=0, id="a", name="Read", args='{"p"')],
                [piece(index=0, id="a", name="Read", args=":1")],
                [piece(index=0, id="a", name="Read", args="}")],
            ],
            [READ_A],
            id="id and name repeated on every chunk",
        ),
        pytest.param(
            [
                [piece(index=0, id="a", name="Read", args='{"p"')],
                [piece(index=0, id=None, name=None, args=":1}")],
                [piece(index=0, id="", name="", args=None)],
            ],
            [READ_A],
            id="null and empty never overwrite",
        ),
        pytest.param(
            [[piece(index=0, id="a", name="Read", args='{"p"')], [piece(index=0, id="x", args=":1}")]],
            [READ_A],
            id="a fresh id on a nameless continuation",
        ),
        pytest.param(
            [
                [piece(index=0, args="")],
                [piece(index=0, id="a", args="")],
                [piece(index=0, name="Read", args='{"p":1}')],
            ],
            [READ_A],
            id="id and name late",
        ),
        pytest.param(
            [[piece(index=0, id="a", name="get_")], [piece(index=0, name="time")], [piece(index=0, args="{}")]],
            [ToolUse("a", "get_time", {})],
            id="name in pieces",
        ),
        pytest.param(
            [[piece(index=0, id="a", name="get_")], [piece(index=0, name="get_time", args="{}")]],
            [ToolUse("a", "get_time", {})],
            id="name growing",
        ),
        pytest.param(
            [[piece(index=0, id="a", name="get_time")]], [ToolUse("a", "get_time", {})], id="arguments absent"
        ),
        pytest.param(
            [[piece(index=0, id="a", name="get_time", args=None)]], [ToolUse("a", "get_time", {})], id="arguments null"
        ),
        pytest.param(
            [[piece(index=0, id="a", name="get_time", args="null")]], [ToolUse("a", "get_time", {})], id="null as text"
        ),
        pytest.param([[piece(index=0, id="a", name="Read", args={"p": 1})]], [READ_A], id="arguments are an object"),
        pytest.param(
            [[piece(index=0, id="a", name="Read", args=json.dumps('{"p":1}'))]], [READ_A], id="arguments encoded twice"
        ),
        pytest.param(
            [
                [piece(index=0, id="a", name="Read", args='{"p":')],
                [piece(index=0, args="1}")],
                [piece(index=0, args='{"p":1}')],
            ],
            [READ_A],
            id="the last chunk repeats the arguments",
        ),
        pytest.param(
            [
                [piece(index=0, id="a", name="Read", args='{"p":')],
                [piece(index=0, args='{"p":')],
                [piece(index=0, args="1}}")],
            ],
            [ToolUse("a", "Read", {"p": {"p": 1}})],
            id="a piece equal to the beginning is not a repetition",
        ),
        pytest.param(
            [
                [piece(index=0, id="a", name="Read", args="")],
                [piece(index=1, id="b", name="Bash", args="")],
                [piece(index=0, args='{"p":1}')],
                [piece(index=1, args='{"c":2}')],
            ],
            [READ_A, BASH_B],
            id="both calls begin before their arguments",
        ),
        pytest.param(
            [
                [piece(index=0, id="a", name="Read", args='{"p"')],
                [piece(index=1, id="b", name="Bash", args='{"c"')],
                [piece(index=0, args=":1}")],
                [piece(index=1, args=":2}")],
            ],
            [READ_A, BASH_B],
            id="arguments interleaved",
        ),
        pytest.param(
            [
                [piece(index=0, id="a", name="Read", args='{"p":1}')],
                [piece(index=1, id="a", name="Bash", args='{"c":2}')],
            ],
            [READ_A, ToolUse("new-1", "Bash", {"c": 2})],
            id="the same id twice",
        ),
        pytest.param(
            [[piece(id="a", name="Read", args='{"p":1}'), piece(id="a", name="Bash", args='{"c":2}')]],
            [READ_A, ToolUse("new-1", "Bash", {"c": 2})],
            id="the same id twice without index",
        ),
        pytest.param(
            [
                [
                    piece(
                        index=7,
                        id="a",
                        name="Read",
                        args='{"p":1}',
                        extra_content={"google": {"thought_signature": "s"}},
                    )
                ]
            ],
            [ToolUse("a", "Read", {"p": 1}, {"extra_content": {"google": {"thought_signature": "s"}}})],
            id="a signature on the call is kept",
        ),
    ],
)
def test_calls_come_out_right(chunks: list[list[dict[str, Any]]], expected: list[ToolUse]) -> None:
    assert calls(*chunks).content == expected


@pytest.mark.parametrize("reason", ["stop", "function_call", "tool_calls", "whatever"])
def test_calls_count_whatever_the_finish_reason_says(reason: str) -> None:
    seen = calls([piece(index=0, id="a", name="Read", args='{"p":1}')], finish=reason)

    assert seen.content == [READ_A]
    assert seen.end is not None
    assert seen.end.stop_reason == reason


@pytest.mark.parametrize(
    ("chunks", "finish", "problem"),
    [
        pytest.param(
            [[piece(index=0, id="a", name="Read", args='{"p":')]], "tool_calls", "not valid JSON", id="broken JSON"
        ),
        pytest.param(
            [[piece(index=0, id="a", name="Read", args="[1]")]], "tool_calls", "JSON list", id="not an object"
        ),
        pytest.param([[piece(index=0, id="a", name="Read", args="12")]], "tool_calls", "JSON int", id="a number"),
        pytest.param([[piece(index=0, id="a", name="Read", args='{"p":')]], "length", "output limit", id="cut call"),
        pytest.param(
            [[piece(index=0, id="a", name="Read", args="")]], "length", "output limit", id="cut before arguments"
        ),
        pytest.param(
            [[piece(index=0, id="a", name="Read", args="")], [piece(index=1, args='{"p":1}')]],
            "tool_calls",
            "another call",
            id="id on one index, arguments on another",
        ),
        pytest.param([[piece(index=0, id="a", args='{"p":1}')]], "tool_calls", "no tool name", id="no name ever"),
    ],
)
def test_a_call_that_is_not_whole_is_never_runnable(
    chunks: list[list[dict[str, Any]]], finish: str, problem: str
) -> None:
    seen = calls(*chunks, finish=finish)

    assert not any(isinstance(call, ToolUse) for call in seen.calls)
    first = seen.calls[0]
    assert isinstance(first, BrokenToolUse)
    assert problem in first.problem
    assert first.id == "a"


def test_a_whole_call_before_a_cut_one_still_counts() -> None:
    seen = calls(
        [piece(index=0, id="a", name="Read", args='{"p":1}')],
        [piece(index=1, id="b", name="Bash", args='{"c')],
        finish="length",
    )

    assert seen.calls[0] == READ_A
    assert isinstance(seen.calls[1], BrokenToolUse)


@pytest.mark.proves("R11")
def test_a_call_is_announced_when_the_next_begins_and_not_before() -> None:
    reader = ChatReader(tools=TOOLS)

    early = reader.feed(chunk({"tool_calls": [piece(index=0, id="a", name="Read", args='{"p":1}')]}))
    assert not any(isinstance(event, BlockEnd) for event in early)

    later = reader.feed(chunk({"tool_calls": [piece(index=1, id="b", name="Bash", args="")]}))
    assert [event.block for event in later if isinstance(event, BlockEnd)] == [READ_A]


def test_arguments_after_a_call_was_announced_fail_the_stream() -> None:
    seen = calls(
        [piece(index=0, id="a", name="Read", args='{"p":1}')],
        [piece(index=1, id="b", name="Bash", args="")],
        [piece(index=0, args='{"p":2}')],
    )

    assert seen.failure is not None
    assert seen.failure.kind == "inconsistent"


def test_an_id_of_an_earlier_turn_is_not_used_again() -> None:
    body = [chunk({"tool_calls": [piece(index=0, id="call_0", name="Read", args="{}")]}), DONE]

    assert read("openai-chat", body, taken={"call_0"}).calls[0].id == "new-1"


def test_the_legacy_function_call_field_is_a_call() -> None:
    body = [
        chunk({"function_call": {"name": "Read", "arguments": '{"p"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
        chunk(finish="function_call"),
        DONE,
    ]

    assert read("openai-chat", body).content == [ToolUse("new-1", "Read", {"p": 1})]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_is_a_channel_of_its_own(field: str) -> None:
    body = [
        chunk({"role": "assistant", "content": "", field: "let me "}),
        chunk({"content": None, field: "see"}),
        chunk({"content": "Hi", field: None}),
        chunk({}, "stop"),
        DONE,
    ]

    assert read("openai-chat", body).content == [Thinking("let me see", {field: "let me see"}), Text("Hi")]


def test_the_same_reasoning_under_two_names_counts_once() -> None:
    body = [chunk({"reasoning": "hm", "reasoning_content": "hm"}), chunk({}, "stop"), DONE]

    assert read("openai-chat", body).content == [Thinking("hm", {"reasoning_content": "hm"})]


def test_reasoning_details_are_kept_for_the_way_back() -> None:
    detail = {"type": "reasoning.encrypted", "data": "xyz"}
    body = [chunk({"reasoning": "hm", "reasoning_details": [detail]}), chunk({"content": "Hi"}, "stop"), DONE]

    assert read("openai-chat", body).content[0] == Thinking("hm", {"reasoning": "hm", "reasoning_details": [detail]})


def test_content_in_parts_with_thinking_is_understood() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    body = [
        chunk({"content": [thought]}),
        chunk({"content": [{"type": "text", "text": "Hi"}]}),
        chunk({}, "stop"),
        DONE,
    ]

    assert read("openai-chat", body).content == [Thinking("hm", {"content": "hm"}), Text("Hi")]


def test_a_refusal_is_shown_as_text() -> None:
    body = [chunk({"content": None, "refusal": "I will "}), chunk({"refusal": "not."}), chunk({}, "stop"), DONE]

    assert read("openai-chat", body).content == [Text("I will not.")]


def test_text_then_calls_then_text_keeps_its_order() -> None:
    body = [
        chunk({"content": "first"}),
        chunk({"tool_calls": [piece(index=0, id="a", name="Read", args='{"p":1}')]}),
        chunk({"content": "second"}),
        chunk({}, "tool_calls"),
        DONE,
    ]

    assert read("openai-chat", body).content == [Text("first"), READ_A, Text("second")]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param([chunk({"content": "x"}), chunk({}, "stop", usage={"prompt_tokens": 1}), DONE], id="with the end"),
        pytest.param(
            [chunk({}, "stop"), b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n', DONE], id="with empty choices"
        ),
        pytest.param(
            [chunk({"content": "x"}, usage={"prompt_tokens": 9}), chunk({}, "stop", usage={"prompt_tokens": 1}), DONE],
            id="on every chunk",
        ),
        pytest.param([chunk({}, "stop", x_groq={"usage": {"prompt_tokens": 1}}), DONE], id="under a vendor key"),
        pytest.param(
            [b'data: {"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1}}]}\n\n', DONE],
            id="inside the choice",
        ),
        pytest.param([chunk({}, "stop", usage={"prompt_tokens": 1}), chunk(usage=None), DONE], id="then null"),
    ],
)
def test_usage_is_found_wherever_it_stands(body: list[bytes]) -> None:
    usage = read("openai-chat", body).usage

    assert usage is not None
    assert usage.input_tokens == 1


def test_usage_may_never_come() -> None:
    assert read("openai-chat", [chunk({"content": "x"}, "stop"), DONE]).usage is None


def test_reasoning_counted_beside_the_output_is_recognised() -> None:
    counts = {
        "prompt_tokens": 291,
        "completion_tokens": 26,
        "total_tokens": 513,
        "completion_tokens_details": {"reasoning_tokens": 196},
    }
    usage = read("openai-chat", [chunk({}, "stop", usage=counts), DONE]).usage

    assert usage is not None
    assert (usage.output_tokens, usage.whole_output) == (26, 222)


@pytest.mark.parametrize(
    ("body", "kind", "retryable"),
    [
        pytest.param(
            [chunk({"content": "x"}), b'data: {"error":{"message":"boom","code":502}}\n\n'],
            "error",
            True,
            id="error object",
        ),
        pytest.param(
            [b'data: {"error":{"message":"no","type":"invalid_request_error"}}\n\n'],
            "invalid_request_error",
            False,
            id="an error that asking again cannot help",
        ),
        pytest.param([b'event: error\ndata: {"message":"boom"}\n\n'], "error", True, id="error event"),
        pytest.param([chunk({"content": "x"})], "cut", True, id="cut without finish"),
        pytest.param([b""], "cut", True, id="no bytes at all"),
        pytest.param([chunk({"content": "x"}), b'data: {"choi'], "malformed", True, id="cut inside an event"),
        pytest.param([b"data: <html>\n\n"], "malformed", True, id="not JSON"),
        pytest.param(
            [b'{"error":{"message":"bad key","type":"authentication_error"}}'],
            "authentication_error",
            False,
            id="a body",
        ),
        pytest.param(
            [b'[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]'], "UNAVAILABLE", True, id="a list"
        ),
        pytest.param([b'{"object":"error","message":"no such model"}'], "error", True, id="a body of another shape"),
    ],
)
def test_a_failing_stream_says_so(body: list[bytes], kind: str, retryable: bool) -> None:
    failure = read("openai-chat", body).failure

    assert isinstance(failure, StreamFailure)
    assert (failure.kind, failure.retryable) == (kind, retryable)


def test_calls_of_a_cut_stream_are_not_announced() -> None:
    seen = read("openai-chat", [chunk({"tool_calls": [piece(index=0, id="a", name="Read", args='{"p":1}')]})])

    assert seen.blocks == {}
    assert seen.failure is not None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param([chunk({"content": "x"}, "stop")], id="no DONE"),
        pytest.param([chunk({"content": "x"}), DONE], id="no finish_reason"),
        pytest.param([chunk({"content": "x"}, "stop"), b"data: [DONE]"], id="no line end"),
        pytest.param([chunk({"content": "x"}, "stop"), DONE, chunk({"content": "late"})], id="chunks after DONE"),
    ],
)
def test_a_careless_end_is_still_an_end(body: list[bytes]) -> None:
    assert read("openai-chat", body).content == [Text("x")]


@pytest.mark.proves("K8")
def test_the_non_streaming_form_gives_the_same_events() -> None:
    message = {
        "role": "assistant",
        "content": "Hi",
        "reasoning_content": "hm",
        "tool_calls": [piece(id="a", type="function", name="Read", args='{"p":1}')],
    }
    body = {
        "id": "c1",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    seen = read("openai-chat", [json.dumps(body).encode()])

    assert seen.content == [Thinking("hm", {"reasoning_content": "hm"}), Text("Hi"), READ_A]
    assert seen.end is not None
    assert seen.end.stop_reason == "tool_calls"


def test_half_a_character_waits_for_its_other_half() -> None:
    body = [
        b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\ude00b"},"finish_reason":"stop"}]}\n\n',
        DONE,
    ]
    seen = read("openai-chat", body)

    assert seen.content == [Text("a\U0001f600b")]
    assert seen.texts == {0: "a\U0001f600b"}


def test_the_model_is_known_although_the_first_chunk_only_reports_filters() -> None:
    body = [b'data: {"choices":[],"model":"","prompt_filter_results":[]}\n\n', chunk({"content": "x"}, "stop"), DONE]

    assert read("openai-chat", body).model == "m"


def test_a_message_that_repeats_the_deltas_adds_nothing() -> None:
    again = {"choices": [{"delta": {}, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    bare = {"choices": [{"message": {"content": "Hi"}}]}
    body = [chunk({"content": "Hi"}), *(b"data: " + json.dumps(end).encode() + b"\n\n" for end in (bare, again)), DONE]

    assert read("openai-chat", body).content == [Text("Hi")]


def test_reasoning_may_come_in_details_alone() -> None:
    body = [
        chunk({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),
        chunk({"content": "Hi"}, "stop"),
        DONE,
    ]

    assert [getattr(block, "text", "") for block in read("openai-chat", body).content] == ["hm", "Hi"]


def test_reasoning_may_come_as_a_summary_among_the_content_parts() -> None:
    part = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    body = [chunk({"content": [part, {"type": "text", "text": "Hi"}]}, "stop"), DONE]

    assert [getattr(block, "text", "") for block in read("openai-chat", body).content] == ["hm", "Hi"]


def test_tool_calls_may_be_one_object_instead_of_a_list() -> None:
    body = [chunk({"tool_calls": piece(index=0, id="a", name="Read", args='{"p":1}')}, "tool_calls"), DONE]

    assert read("openai-chat", body).content == [READ_A]


BEGIN = [{"tool_calls": [piece(index=0, id="a", name="Read", args=args)]} for args in ("", '{"p"', '{"p":1}')]
MORE: list[dict[str, Any]] = [
    *({"tool_calls": [piece(index=0, args=args)]} for args in ("", ":1}", '{"p":1}', " ")),
    {"tool_calls": [piece(index=0, name="Read", args='{"p":2}')]},
    {"tool_calls": [piece(index=1, id="b", name="Bash", args='{"c"')]},
    {"tool_calls": [piece(index=1, args=":2}")]},
    {"tool_calls": [piece(args=":1}")]},
    {"tool_calls": [piece(index=0, args=":1}"), piece(index=1, args=":2}")]},
    {"content": "Hi"},
    {"reasoning_details": [{"text": "hm"}]},
]


def events(deltas: Iterable[dict[str, Any]]) -> list[StreamEvent]:
    reader = ChatReader(tools=TOOLS, new_id=numbered())
    fed = [event for delta in deltas for event in reader.feed(chunk(delta))]
    return [*fed, *reader.feed(chunk(finish="tool_calls") + DONE)]


def test_a_chunk_that_holds_nothing_but_calls_means_what_it_means_with_empty_words_beside() -> None:
    """The first form has a short way through the reader, the second one has not."""
    for deltas in product(BEGIN, MORE, MORE, MORE):
        worded = [{"content": None, "refusal": None, **delta} for delta in deltas]
        assert events(deltas) == events(worded)
