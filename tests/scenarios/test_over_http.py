"""The same loop against a model server on loopback that refuses what strict servers refuse."""

import asyncio
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent, Text, ToolUse, tool
from handrail.conversation.blocks import BrokenToolUse, Thinking
from handrail.conversation.stream import StreamRetry
from handrail.loop.events import AnswerDiscarded, RequestSent, ResultsComplete
from handrail.loop.state import Why
from handrail.providers.choose import ModelOptions
from handrail.session.transcript import TranscriptOptions
from handrail.testing.gated import GatedTool
from handrail.testing.model_server import ModelServer, Received, Reply
from handrail.tools.events import CallFinished, CallStarted
from handrail.tools.outcome import Cause
from handrail.tools.pool import AnyTool, Deferral
from tests.opening import open_agent
from tests.scenarios.playing import ending, only, played

pytestmark = pytest.mark.anyio

CUT = {"anthropic": "max_tokens", "openai": "length", "openai-responses": "incomplete"}
APIS = ("anthropic", "openai", "openai-responses")


def agent_for(server: ModelServer, api: str, *tools: AnyTool, **options: Any) -> Agent[Any]:
    base = server.url if api == "anthropic" else f"{server.url}/v1"
    model = ModelOptions(api, "test-model", base)
    return open_agent(model, tools, **{"builtin_tools": False, "env": {}, **options})


@tool(read_only=True, concurrency_safe=True)
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@pytest.mark.proves("K1", "K2", "E37", "R1")
@pytest.mark.parametrize("api", APIS)
async def test_calls_and_results_go_over_the_wire_of_every_api(api: str) -> None:
    replies = [
        Reply((Thinking("hm"), ToolUse("c1", "shout", {"text": "a"}), ToolUse("c2", "shout", {"text": "b"}))),
        Reply((ToolUse("c3", "Nope", {}), BrokenToolUse("c4", "shout", '{"text": ', "cut")), stop_reason=CUT[api]),
        Reply((Text("Done."),)),
    ]  # fmt: skip
    with anyio.fail_after(10):
        async with ModelServer(replies, strict=True) as server, agent_for(server, api, shout) as agent:
            events = await played(agent.run("Go."))

    ended = ending(events)
    assert (ended.why, ended.text, ended.turns) == (Why.COMPLETED, "Done.", 3)
    causes = [[outcome.cause for outcome in event.outcomes] for event in only(events, ResultsComplete)]
    assert causes == [[Cause.DONE, Cause.DONE], [Cause.UNKNOWN_TOOL, Cause.INCOMPLETE]]


@pytest.mark.proves("E7", "R11")
async def test_a_tool_starts_and_ends_while_the_server_still_sends() -> None:
    more = asyncio.Event()
    reply = Reply((ToolUse("c1", "shout", {"text": "a"}), Text("And so on.")), gates={4: more})
    with anyio.fail_after(10):
        async with (
            ModelServer([reply, Reply((Text("Done."),))], strict=True) as server,
            agent_for(server, "anthropic", shout) as agent,
        ):
            run = agent.run("Go.")
            async for event in run:
                if isinstance(event, CallFinished):
                    more.set()  # the rest of the answer waits for this
            assert run.ended is not None
            assert run.ended.text == "Done."


@pytest.mark.proves("K8")
async def test_a_stream_that_breaks_before_a_call_is_asked_again_by_the_provider() -> None:
    replies = [Reply((Text("Half an ans"), Text("wer")), cut_after=4), Reply((Text("Whole."),))]
    with anyio.fail_after(10):
        async with ModelServer(replies, strict=True) as server, agent_for(server, "anthropic") as agent:
            events = await played(agent.run("Go."))
            streamed = [request.body["stream"] for request in server.requests]

    assert streamed == [True, False]
    assert [event.failure.kind for event in only(events, StreamRetry)] == ["cut"]
    assert ending(events).text == "Whole."
    assert [message.text for message in agent.messages if hasattr(message, "text")] == ["Whole."]


@pytest.mark.proves("K8", "R1")
async def test_a_stream_that_breaks_after_a_call_is_asked_again_without_streaming() -> None:
    slow = GatedTool("Slow")
    call = ToolUse("c1", "Slow", {})
    replies = [Reply((call, Text("x")), cut_after=5), Reply((call,)), Reply((Text("Done."),))]
    with anyio.fail_after(10):
        async with ModelServer(replies, strict=True) as server, agent_for(server, "anthropic", slow) as agent:
            run = agent.run("Go.")
            events = []
            async for event in run:
                events.append(event)
                if isinstance(event, AnswerDiscarded):
                    slow.open_all("c1")
            streamed = [request.body["stream"] for request in server.requests]

    assert streamed == [True, False, True]
    assert [event.failure.kind for event in only(events, AnswerDiscarded)] == ["cut"]
    assert ending(events).text == "Done."
    assert ending(events).turns == 2


@pytest.mark.proves("K5")
async def test_an_interrupt_hangs_up_at_once() -> None:
    with anyio.fail_after(10):
        async with (
            ModelServer([Reply((Text("Hello"),), stall_after=3)], strict=True) as server,
            agent_for(server, "anthropic") as agent,
        ):
            run = agent.run("Go.")
            await anext(run)
            reading = asyncio.create_task(played(run))
            await server.stalled.wait()
            agent.interrupt()
            events = await reading
            await server.left.wait()

    assert ending(events).why is Why.ABORTED_STREAMING


async def test_an_error_status_is_in_the_last_event() -> None:
    with anyio.fail_after(10):
        async with (
            ModelServer([Reply(status=403, error="not for you")]) as server,
            agent_for(server, "openai") as agent,
        ):
            ended = ending(await played(agent.run("Go.")))

    assert ended.failure is not None
    assert (ended.why, ended.failure.status, ended.failure.message) == (Why.MODEL_FAILED, 403, "not for you")


# The bytes of consecutive requests


def head(request: Received) -> bytes:
    """Everything before the messages."""
    return request.raw[: request.raw.index(b'"messages":[')]


def said(request: Received) -> list[Any]:
    """The messages without the cache marks, which wander."""
    return list(json.loads(request.raw.replace(b',"cache_control":{"type":"ephemeral"}', b""))["messages"])


def grows_only(requests: Sequence[Received]) -> bool:
    return all(said(later)[: len(said(earlier))] == said(earlier) for earlier, later in pairwise(requests))


@pytest.mark.proves("R5", "B17")
async def test_what_precedes_the_messages_is_the_same_bytes_in_all_requests_of_a_conversation() -> None:
    calls = [Reply((ToolUse(f"c{n}", "shout", {"text": str(n)}),)) for n in range(10)]
    replies = [*calls, Reply((Text("One."),)), Reply((Text("Two."),))]
    with anyio.fail_after(10):
        async with (
            ModelServer(replies, strict=True) as server,
            agent_for(server, "anthropic", shout, builtin_tools=True, system_prompt="Be brief.") as agent,
        ):
            events = [*await played(agent.run("1")), *await played(agent.run("2"))]
            requests = server.requests

    assert len(requests) == 12
    assert len({head(request) for request in requests}) == 1
    assert len({sent.prefix for sent in only(events, RequestSent)}) == 1
    assert grows_only(requests)
    tools = requests[0].body["tools"]
    assert [("cache_control" in each) for each in tools] == [False] * (len(tools) - 1) + [True]


@pytest.mark.proves("R5", "C1", "C6", "C7", "C8")
async def test_finding_a_deferred_tool_only_appends_its_definition() -> None:
    @tool(read_only=True, should_defer=True, search_hint="forecast rain sun")
    async def weather(city: str) -> str:
        """Tell the weather."""
        return f"sun in {city}"

    replies = [
        Reply((ToolUse("c1", "ToolSearch", {"query": "rain"}),)),
        Reply((ToolUse("c2", "weather", {"city": "Bern"}),)),
        Reply((Text("Sun."),)),
    ]
    with anyio.fail_after(10):
        async with ModelServer(replies, strict=True) as server:
            options = {"deferral": Deferral(mode="on"), "builtin_tools": ["Glob", "Read"]}
            async with agent_for(server, "anthropic", shout, weather, **options) as agent:
                events = await played(agent.run("Weather?"))
                first, second, third = server.requests

    assert ending(events).text == "Sun."
    names = [[each["name"] for each in request.body["tools"]] for request in (first, second, third)]
    assert names == [
        ["Glob", "Read", "ToolSearch"],
        ["Glob", "Read", "ToolSearch", "weather"],
        ["Glob", "Read", "ToolSearch", "weather"],
    ]
    assert first.body["system"] == second.body["system"]
    assert "weather" not in str(first.body["system"])
    assert "weather" in str(first.body["messages"][0])
    opening = head(first)[: head(first).index(b'],"system"')]
    assert second.raw.startswith(opening)
    assert head(second) == head(third)
    assert grows_only([first, second, third])


async def test_built_in_tools_read_real_files_in_the_agents_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hands and rails\n")
    call = ToolUse("c1", "Read", {"file_path": str(tmp_path / "a.txt")})
    with anyio.fail_after(10):
        async with (
            ModelServer([Reply((call,)), Reply((Text("Read."),))], strict=True) as server,
            agent_for(server, "openai", builtin_tools=True, cwd=tmp_path) as agent,
        ):
            events = await played(agent.run("Read it."))

    [results] = only(events, ResultsComplete)
    assert "hands and rails" in results.outcomes[0].result.text
    assert len(only(events, CallStarted)) == 1


@pytest.mark.proves("R5")
async def test_requests_of_a_session_name_one_prompt_cache_also_after_it_is_resumed(tmp_path: Path) -> None:
    async def keys(api: str, session: str) -> list[Any]:
        replies = [Reply((ToolUse("c1", "shout", {"text": "a"}),)), Reply((Text("Done."),))]
        async with ModelServer(replies, strict=True) as server:
            options = {"cwd": tmp_path, "env": {"HANDRAIL_STATE_DIR": str(tmp_path / "state")}}
            kept = TranscriptOptions(resume_or_create=session)
            async with agent_for(server, api, shout, transcript=kept, **options) as agent:
                await played(agent.run("Go."))
            return [request.body.get("prompt_cache_key") for request in server.requests]

    with anyio.fail_after(10):
        first, second = await keys("openai-responses", "one"), await keys("openai-responses", "two")
        again, chat = await keys("openai-responses", "one"), await keys("openai", "three")

    assert first == again
    assert len({*first, *second}) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in (*first, *second))
    assert chat == [None, None]  # not every server that imitates OpenAI takes a field that it does not know
