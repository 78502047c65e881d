"""Answers in the Responses format, the odd ones too, each on real bytes."""

import json
from typing import Any

import pytest

from handrail.conversation.blocks import BrokenToolUse, ServerBlock, Text, Thinking, ToolUse
from handrail.conversation.stream import BlockEnd
from handrail.providers.openai_responses_reader import ResponsesReader
from tests.providers.reading import read


def event(kind: str, **fields: Any) -> bytes:
    return f"data: {json.dumps({'type': kind, **fields})}\n\n".encode()


def call(arguments: str = "", status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": "fc",
        "call_id": "a",
        "name": "Read",
        "arguments": arguments,
        "status": status,
    } | fields


def last(*output: dict[str, Any], status: str = "completed", **fields: Any) -> bytes:
    response = {"id": "r", "model": "m", "status": status, "output": list(output), **fields}
    return event(f"response.{status}", response=response)


START = event("response.created", response={"id": "r", "model": "m"})
ADDED = event("response.output_item.added", output_index=0, item=call(status="in_progress"))
DELTA = event("response.function_call_arguments.delta", output_index=0, item_id="fc", delta='{"p":1}')
ARGS_DONE = event("response.function_call_arguments.done", output_index=0, item_id="fc", arguments='{"p":1}')
DONE = event("response.output_item.done", output_index=0, item=call('{"p":1}'))
READ = ToolUse("a", "Read", {"p": 1})


@pytest.mark.proves("R11")
def test_a_call_is_announced_when_its_item_is_done_and_not_before() -> None:
    reader = ResponsesReader()

    assert not any(isinstance(e, BlockEnd) for e in reader.feed(START + ADDED + DELTA + ARGS_DONE))
    assert reader.feed(DONE) == [BlockEnd(0, READ)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param([START, ADDED, DELTA, DONE, last(call('{"p":1}'))], id="the norm"),
        pytest.param([START, ADDED, DELTA, ARGS_DONE, last()], id="no item done"),
        pytest.param([START, last(call('{"p":1}'))], id="only in the closing response"),
        pytest.param([START, DONE, last()], id="only the done item"),
        pytest.param(
            [
                START,
                event("response.output_item.added", item=call(status="in_progress")),
                event("response.function_call_arguments.delta", item_id="fc", delta='{"p":1}'),
                event("response.output_item.done", item=call('{"p":1}')),
                last(call('{"p":1}')),
            ],
            id="no output_index",
        ),
        pytest.param(
            [START, ADDED, DELTA, event("response.output_item.done", output_index=0, item=call()), last()],
            id="empty done",
        ),
        pytest.param([START, event("response.something.new", x=1), DONE, b": hi\n\n", last()], id="unknown events"),
    ],
)
def test_a_call_comes_out_whatever_the_server_leaves_out(body: list[bytes]) -> None:
    assert read("openai-responses", body).content == [READ]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(
            [ADDED, event("response.output_item.done", output_index=0, item=call('{"p'))], "JSON", id="broken JSON"
        ),
        pytest.param(
            [ADDED, event("response.output_item.done", output_index=0, item=call("{}", "incomplete"))],
            "cut",
            id="cut item",
        ),
        pytest.param([ADDED, DELTA], "cut", id="cut answer"),
    ],
)
def test_a_cut_or_broken_call_is_never_runnable(body: list[bytes], problem: str) -> None:
    closing = last(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    seen = read("openai-responses", [START, *body, closing])

    (broken,) = seen.content
    assert isinstance(broken, BrokenToolUse)
    assert problem in broken.problem
    assert seen.end is not None
    assert (seen.end.stop_reason, seen.end.detail) == ("incomplete", "max_output_tokens")


def test_reasoning_is_shown_and_its_item_kept_whole() -> None:
    item = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "x",
    }
    body = [
        START,
        event("response.output_item.added", output_index=0, item={"type": "reasoning", "id": "rs", "summary": []}),
        event("response.reasoning_summary_text.delta", output_index=0, item_id="rs", summary_index=0, delta="hm"),
        event("response.output_item.done", output_index=0, item=item),
        last(item),
    ]

    assert read("openai-responses", body).content == [Thinking("hm", item)]


def test_text_refusals_server_items_and_free_text_calls() -> None:
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    custom = {"type": "custom_tool_call", "id": "ct", "call_id": "b", "name": "Patch", "input": "free"}
    body = [
        START,
        event("response.output_text.delta", output_index=0, content_index=0, item_id="m", delta="Hi"),
        event("response.output_item.done", output_index=0, item={"type": "message", "id": "m", "content": []}),
        event("response.refusal.delta", output_index=1, content_index=0, item_id="n", delta="No."),
        event("response.output_item.done", output_index=1, item={"type": "message", "id": "n", "content": []}),
        event("response.output_item.done", output_index=2, item=search),
        event("response.output_item.done", output_index=3, item=custom),
        last(),
    ]

    assert read("openai-responses", body).content == [
        Text("Hi"),
        Text("No."),
        ServerBlock("web_search_call", search),
        ToolUse("b", "Patch", {"input": "free"}),
    ]


@pytest.mark.parametrize(
    ("body", "kind", "retryable"),
    [
        pytest.param(
            [START, last(status="failed", error={"code": "server_error", "message": "boom"})],
            "server_error",
            True,
            id="failed",
        ),
        pytest.param(
            [START, event("error", code="rate_limit_exceeded", message="slow")], "rate_limit_exceeded", True, id="error"
        ),
        pytest.param(
            [START, event("error", error={"type": "invalid_request_error", "message": "x"})],
            "invalid_request_error",
            False,
            id="nested error",
        ),
        pytest.param([START, ADDED, DELTA], "cut", True, id="cut"),
    ],
)
def test_a_failing_stream_says_so(body: list[bytes], kind: str, retryable: bool) -> None:
    failure = read("openai-responses", body).failure

    assert failure is not None
    assert (failure.kind, failure.retryable) == (kind, retryable)


@pytest.mark.proves("K8")
def test_the_non_streaming_form_gives_the_same_events() -> None:
    message = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]}
    body = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": [message, call('{"p":1}')]}

    assert read("openai-responses", [json.dumps(body).encode()]).content == [Text("Hi"), READ]
