"""No bytes make a reader raise, hang or end twice."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.conversation.stream import StreamFailure
from handrail.http.sse import EventReader
from handrail.providers import reader as reader_module
from handrail.providers.reader import AnswerReader
from tests.providers.reading import READERS, read

KEYS = [
    "type",
    "index",
    "id",
    "name",
    "delta",
    "choices",
    "message",
    "content",
    "tool_calls",
    "function",
    "arguments",
    "usage",
    "error",
    "finish_reason",
    "text",
    "thinking",
    "item",
    "output_index",
    "item_id",
    "call_id",
    "response",
    "output",
    "content_block",
    "partial_json",
    "stop_reason",
    "reasoning_details",
    "code",
    "status",
]
VALUES = [
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "error",
    "tool_use",
    "text",
    "text_delta",
    "input_json_delta",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.completed",
    "response.output_text.delta",
    "response.function_call_arguments.delta",
    "function_call",
    "message",
    "reasoning",
    "{}",
    "null",
    "stop",
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-1, 3)
    | st.floats(allow_nan=False)
    | st.sampled_from(VALUES)
    | st.text(max_size=3)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)
payloads = st.dictionaries(st.sampled_from(KEYS), values, max_size=6)


@settings(max_examples=settings().max_examples // 2)
@given(st.sampled_from(sorted(READERS)), st.lists(payloads, max_size=6), st.booleans())
def test_any_json_gives_an_end_or_a_failure(api: str, events: list[Any], done: bool) -> None:
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)

    read(api, [body, b"data: [DONE]\n\n" if done else b""])


@given(st.sampled_from(sorted(READERS)), st.lists(st.binary(max_size=30), max_size=6))
def test_any_bytes_give_an_end_or_a_failure(api: str, chunks: list[bytes]) -> None:
    read(api, chunks)


@settings(max_examples=settings().max_examples // 2)
@given(st.sampled_from(sorted(READERS)), payloads)
def test_any_whole_json_body_gives_an_end_or_a_failure(api: str, payload: Any) -> None:
    read(api, [json.dumps(payload).encode()])


@pytest.mark.proves("R6")
@pytest.mark.parametrize("api", sorted(READERS))
def test_an_endless_answer_is_given_up(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MAX_ANSWER", 1000)
    reader: AnswerReader = READERS[api]()

    events = [event for _ in range(200) for event in reader.feed(b": nothing\n")]

    assert [type(event) for event in events] == [StreamFailure]


@pytest.mark.parametrize("api", sorted(READERS))
def test_deeply_nested_json_is_a_failure_and_not_a_crash(api: str) -> None:
    seen = read(api, [b"data: " + b"[" * 200_000 + b"\n\n"])

    assert seen.failure is not None


@pytest.mark.parametrize("api", READERS)
def test_an_event_that_grows_too_large_with_the_last_bytes_is_a_failure(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "EventReader", lambda: EventReader(limit=20))
    reader = READERS[api]()
    events = reader.feed(b"data: 0123456789\ndata: 0123456789a")

    events += reader.end()

    assert [(event.kind, event.retryable) for event in events if isinstance(event, StreamFailure)] == [
        ("oversized", False)
    ]
