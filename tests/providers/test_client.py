"""Asking a model over real sockets: answers, retries, fallbacks, aborts."""

import asyncio
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import AssistantBlock, Text, Thinking, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.conversation.request import Chain
from handrail.conversation.stream import (
    BlockEnd,
    Delta,
    MessageEnd,
    MessageStart,
    StreamEvent,
    StreamFailure,
    StreamRetry,
)
from handrail.http.transport import HttpRequest
from handrail.providers.client import Endpoint, Provider
from handrail.providers.retry import RetryPolicy
from handrail.testing.model_server import ModelServer, Reply
from tests.providers.asking import APIS, asking, everything, question
from tests.providers.virtual_clock import VirtualClock

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("close_connections")]

READ = ToolUse("a", "Read", {"path": "x"})
HELLO = Reply((Text("Hello, you"),), piece=3)
CALL = Reply((Text("Let me see."), READ))


class Recorded:
    """An answer from memory, in the chunks that it once came in."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = iter(chunks)
        self.status = 200
        self.headers: dict[str, str] = {}

    async def read(self) -> bytes:
        return next(self._chunks, b"")

    def abort(self) -> None:
        pass

    def leave(self) -> None:
        pass


def blocks(events: list[StreamEvent]) -> list[AssistantBlock]:
    return [event.block for event in events if isinstance(event, BlockEnd)]


def retries(events: list[StreamEvent]) -> list[StreamRetry]:
    return [event for event in events if isinstance(event, StreamRetry)]


@pytest.mark.parametrize("plain", [False, True], ids=["streaming", "plain"])
@pytest.mark.parametrize("chunk", [0, 1, 7], ids=lambda size: f"chunks of {size}")
@pytest.mark.parametrize("api", sorted(APIS))
async def test_an_answer_comes_whole_over_a_socket(api: str, chunk: int, plain: bool) -> None:
    said = (Thinking("hm, ä"), Text("Let me see."), READ, ToolUse("b", "Now", {}))
    with anyio.fail_after(10):
        async with ModelServer([Reply(said, chunk=chunk, piece=2)]) as server:
            provider = asking(server, api)
            events = await everything(provider, question(), plain=plain)

    assert isinstance(events[0], MessageStart)
    assert isinstance(events[-1], MessageEnd)
    got = blocks(events)
    assert isinstance(got[0], Thinking)
    assert got[0].text == "hm, ä"
    assert got[1:] == [Text("Let me see."), READ, ToolUse("b", "Now", {})]
    assert server.requests[0].body["stream"] is not plain


@pytest.mark.proves("E37", "R1", "R5")
@pytest.mark.parametrize("api", sorted(APIS))
async def test_a_second_round_with_the_result_gives_the_final_answer(api: str) -> None:
    call = Reply((Thinking("hm"), Text("Let me see."), READ, ToolUse("b", "Now", {})))
    with anyio.fail_after(5):
        async with ModelServer([call, HELLO], strict=True) as server:
            provider, request = asking(server, api), question()
            first = blocks(await everything(provider, request))
            request.history.append(AssistantMessage(tuple(first)))
            results = (ToolResult("a", (Text("text"),)), ToolResult("b", (Text("no clock"),), is_error=True))
            request.history.append(UserMessage((*results, Text("Go on."))))
            second = blocks(await everything(provider, request))

    assert second == [Text("Hello, you")]
    mark = b',"cache_control":{"type":"ephemeral"}'
    before, after = (sent.raw.replace(mark, b"") for sent in server.requests)
    assert after.startswith(before.removesuffix(b"]}"))


async def test_consecutive_requests_share_a_connection() -> None:
    with anyio.fail_after(5):
        async with ModelServer([HELLO, CALL, HELLO]) as server:
            provider = asking(server)
            for _ in range(3):
                await everything(provider, question())

    assert [request.connection for request in server.requests] == [1, 1, 1]


async def test_a_connection_the_server_closed_meanwhile_is_replaced() -> None:
    with anyio.fail_after(5):
        async with ModelServer([HELLO]) as server:
            provider = asking(server)
            await everything(provider, question())
            port = int(server.url.rpartition(":")[2])
        async with ModelServer([HELLO], port=port):
            events = await everything(provider, question())

    assert blocks(events) == [Text("Hello, you")]
    assert retries(events) == []


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_a_passing_refusal_is_asked_again(status: int) -> None:
    with anyio.fail_after(5):
        async with ModelServer([Reply(status=status, error="busy"), HELLO]) as server:
            events = await everything(asking(server), question())

    assert [retry.failure.status for retry in retries(events)] == [status]
    assert blocks(events) == [Text("Hello, you")]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_final_refusal_is_not_asked_again(status: int) -> None:
    with anyio.fail_after(5):
        async with ModelServer([Reply(status=status, error="no such thing"), HELLO]) as server:
            events = await everything(asking(server), question())

    asked = f"{server.url}/v1/messages, model 'm'"
    assert events == [StreamFailure("scripted", "no such thing", retryable=False, status=status, asked=asked)]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "word", "requests"), [(400, "true", 1), (401, "true", 1), (500, "false", 1), (422, "true", 2)]
)
async def test_the_server_may_say_whether_to_ask_again_but_never_for_a_wrong_request(
    status: int, word: str, requests: int
) -> None:
    with anyio.fail_after(5):
        async with ModelServer([Reply(status=status, headers={"x-should-retry": word}), HELLO]) as server:
            await everything(asking(server), question())

    assert len(server.requests) == requests


async def test_delays_double_with_jitter_and_end() -> None:
    clock = VirtualClock()
    policy = RetryPolicy(attempts=5, first_delay=1.0, longest_delay=3.0)
    with anyio.fail_after(5):
        async with ModelServer([Reply(status=500)] * 9) as server:
            events = await everything(asking(server, clock=clock, retry=policy, random=lambda: 0.0), question())

    assert clock.slept == [0.5, 1.0, 1.5, 1.5]
    assert isinstance(events[-1], StreamFailure)
    assert len(server.requests) == 5


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        pytest.param({"retry-after": "7"}, 7.0, id="seconds"),
        pytest.param({"retry-after-ms": "250"}, 0.25, id="milliseconds"),
        pytest.param({"retry-after": "Mon, 12 Jan 1970 13:47:10 GMT"}, 30.0, id="a date"),
        pytest.param({"retry-after": "soon"}, 0.5, id="nonsense: our own delay"),
    ],
)
async def test_the_server_may_say_how_long_to_wait(headers: dict[str, str], waited: float) -> None:
    clock = VirtualClock(now=1_000_000.0)
    policy = RetryPolicy(first_delay=1.0)
    with anyio.fail_after(5):
        async with ModelServer([Reply(status=429, headers=headers), HELLO]) as server:
            await everything(asking(server, clock=clock, retry=policy, random=lambda: 0.0), question())

    assert clock.slept == [waited]


async def test_a_server_that_wants_hours_is_not_waited_for() -> None:
    with anyio.fail_after(5):
        async with ModelServer([Reply(status=429, error="quota", headers={"retry-after": "7200"}), HELLO]) as server:
            events = await everything(asking(server), question())

    [failure] = events
    assert isinstance(failure, StreamFailure)
    assert (failure.message, failure.retryable, failure.retry_after) == ("quota", True, 7200.0)


async def test_no_server_at_all_is_a_failure_that_says_where() -> None:
    async with ModelServer() as server:
        pass
    with anyio.fail_after(5):
        events = await everything(asking(server, retry=RetryPolicy(attempts=2)), question())

    failure = events[-1]
    assert isinstance(failure, StreamFailure)
    assert failure.kind == "refused"
    assert server.url in failure.message
    assert len(retries(events)) == 1


@pytest.mark.proves("K8")
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(Reply((Text("Hello, you"),), cut_after=3), id="cut"),
        pytest.param(Reply(raw=(b"data: {\n\n",)), id="malformed"),
        pytest.param(Reply(raw=(b": nothing\n\n",)), id="ends early"),
    ],
)
async def test_a_broken_stream_is_asked_for_in_one_piece(broken: Reply) -> None:
    with anyio.fail_after(5):
        async with ModelServer([broken, HELLO]) as server:
            events = await everything(asking(server), question())

    assert [request.body["stream"] for request in server.requests] == [True, False]
    assert len(retries(events)) == 1
    assert blocks(events[events.index(retries(events)[0]) :]) == [Text("Hello, you")]


async def test_a_server_without_streaming_is_asked_for_the_whole() -> None:
    refusal = Reply(status=400, error="streaming is not supported by this model")
    with anyio.fail_after(5):
        async with ModelServer([refusal, HELLO]) as server:
            events = await everything(asking(server, "openai"), question())

    assert blocks(events) == [Text("Hello, you")]


async def test_an_error_event_in_the_middle_is_asked_again() -> None:
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    with anyio.fail_after(5):
        async with ModelServer([Reply(raw=(error,)), HELLO]) as server:
            events = await everything(asking(server), question())

    assert retries(events)[0].failure.kind == "overloaded_error"
    assert blocks(events) == [Text("Hello, you")]


async def test_after_a_call_was_handed_out_a_failure_is_the_callers_to_answer() -> None:
    gate = asyncio.Event()
    seen: list[StreamEvent] = []
    # frames: start, text block (3), call block (3), then the gate
    reply = Reply((Text("See"), READ, Text("more")), gates={7: gate}, cut_after=8)
    with anyio.fail_after(5):
        async with ModelServer([reply, HELLO]) as server:
            async for event in asking(server).stream(question()):
                seen.append(event)
                if isinstance(event, BlockEnd) and event.block == READ:
                    gate.set()

    assert READ in blocks(seen)
    assert retries(seen) == []
    assert isinstance(seen[-1], StreamFailure)
    assert seen[-1].retryable
    assert len(server.requests) == 1


async def test_a_call_that_was_not_handed_out_yet_does_not_stop_a_retry() -> None:
    call = b"".join(APIS_ANTHROPIC_CALL)
    with anyio.fail_after(5):
        async with ModelServer([Reply(raw=(call + b"data: {\n\n",)), HELLO]) as server:
            events = await everything(asking(server), question())

    assert blocks(events) == [Text("Hello, you")]


APIS_ANTHROPIC_CALL = (
    b'data: {"type":"message_start","message":{}}\n\n',
    b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"R"}}\n\n',
    b'data: {"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\\"a\\":1}"}}\n\n',
    b'data: {"type":"content_block_stop","index":0}\n\n',
)


async def test_an_overloaded_model_is_left_for_the_fallback_model() -> None:
    policy = RetryPolicy(attempts=9, overload_attempts=2)
    replies = [Reply(status=529), Reply(status=529), Reply(status=404, error="unknown model"), HELLO]
    with anyio.fail_after(5):
        async with ModelServer(replies) as server:
            events = await everything(asking(server, retry=policy, fallback_models=("b", "c")), question())

    assert [request.body["model"] for request in server.requests] == ["m", "m", "b", "c"]
    assert [retry.model for retry in retries(events)] == ["m", "b", "c"]
    assert blocks(events) == [Text("Hello, you")]


async def test_a_silent_stream_is_given_up_and_asked_again() -> None:
    clock = VirtualClock()
    with anyio.fail_after(5):
        async with ModelServer([Reply((Text("Hello"),), stall_after=2), HELLO]) as server:
            events: list[StreamEvent] = []

            async def listen() -> None:
                events.extend(await everything(asking(server, clock=clock), question()))

            async with anyio.create_task_group() as group:
                group.start_soon(listen)
                await server.stalled.wait()
                await anyio.wait_all_tasks_blocked()
                clock.expire()
            await server.left.wait()

    assert retries(events)[0].failure.kind == "stalled"
    assert isinstance(events[-1], MessageEnd)


@pytest.mark.proves("K5")
@pytest.mark.parametrize("frames", [1, 3], ids=["at the beginning", "in the middle"])
async def test_cancelling_closes_the_connection_at_once(frames: int) -> None:
    with anyio.fail_after(5):
        async with ModelServer([Reply((Text("Hello"),), stall_after=frames)]) as server:
            answer = asking(server).stream(question())
            heard = asyncio.Event()

            async def listen() -> None:
                async for _ in answer:
                    heard.set()

            task = asyncio.create_task(listen())
            await heard.wait()
            await server.stalled.wait()
            await anyio.wait_all_tasks_blocked()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.left.wait()

    assert len(server.requests) == 1


async def test_cancelling_before_the_answer_begins_closes_the_connection_too() -> None:
    with anyio.fail_after(5):
        async with ModelServer([Reply((Text("Hello"),), stall_after=0)]) as server:
            task = asyncio.create_task(everything(asking(server), question()))
            await server.stalled.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.left.wait()


async def test_a_kept_connection_that_dies_under_the_request_is_replaced_silently() -> None:
    with anyio.fail_after(5):
        async with ModelServer([HELLO, Reply(status=0), HELLO]) as server:
            provider = asking(server)
            await everything(provider, question())
            events = await everything(provider, question())

    assert [request.connection for request in server.requests] == [1, 1, 2]
    assert retries(events) == []
    assert blocks(events) == [Text("Hello, you")]


async def test_an_answer_that_was_whole_before_the_connection_broke_is_whole() -> None:
    last = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    with anyio.fail_after(5):
        async with ModelServer([Reply(raw=(last, b"never sent"), cut_after=1)]) as server:
            events = await everything(asking(server, "openai"), question())

    assert blocks(events) == [Text("Hi")]
    assert isinstance(events[-1], MessageEnd)


async def test_closing_an_answer_early_closes_the_connection() -> None:
    with anyio.fail_after(5):
        async with ModelServer([Reply((Text("Hello"),), piece=1, stall_after=4)]) as server:
            answer = asking(server).stream(question())
            async for event in answer:
                if isinstance(event, Delta):
                    break
            await answer.aclose()
            await server.left.wait()

            assert [event async for event in answer] == []


async def test_deltas_arrive_while_the_server_still_speaks() -> None:
    gate = asyncio.Event()
    with anyio.fail_after(5):
        async with ModelServer([Reply((Text("ab"),), piece=1, gates={3: gate})]) as server:
            texts = []
            async for event in asking(server).stream(question()):
                if isinstance(event, Delta):
                    texts.append((event.text, gate.is_set()))
                    gate.set()

    assert texts == [("a", False), ("b", True)]


@pytest.mark.proves("K11")
async def test_a_request_carries_its_query_chain() -> None:
    with anyio.fail_after(5):
        async with ModelServer([HELLO]) as server:
            await everything(asking(server), question(chain=Chain("chain-1", 2)))

    headers = server.requests[0].headers
    assert (headers["x-handrail-chain"], headers["x-handrail-depth"]) == ("chain-1", "2")


async def test_a_request_says_who_asks() -> None:
    with anyio.fail_after(5):
        async with ModelServer([HELLO]) as server:
            await everything(asking(server), question())

    assert server.requests[0].headers["user-agent"] == "handrail"


async def test_a_recorded_answer_takes_the_place_of_the_wire() -> None:
    class Tape:
        def __init__(self) -> None:
            self.asked: list[HttpRequest] = []

        async def send(self, outgoing: HttpRequest, /) -> Recorded:
            self.asked.append(outgoing)
            return Recorded(b'data: {"choices":[{"delta":{"content":"H', b'i"},"finish_reason":"stop"}]}\n\n')

        async def aclose(self) -> None: ...

    tape = Tape()
    provider = Provider(APIS["openai"], Endpoint("http://nowhere.invalid/v1"), tape)

    assert blocks(await everything(provider, question())) == [Text("Hi")]
    assert tape.asked == [provider.build_request(question(), stream=True)]


@pytest.mark.proves("R10")
async def test_an_endpoint_never_shows_its_credentials() -> None:
    endpoint: Any = Endpoint("http://h", (("x-api-key", "sk-secret"),))

    assert "sk-secret" not in repr(endpoint)
    assert "sk-secret" not in f"{[endpoint]}"
