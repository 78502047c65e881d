"""Prompts, turns, sessions and limits."""

import asyncio
import json
import shutil
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    InMemorySessionStore,
    Message,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    ThinkingBlock,
    ToolUseBlock,
    UserMessage,
    get_session_messages_from_store,
    project_key_for_directory,
    query,
)

from handrail.conversation.blocks import Text, Thinking
from handrail.testing.model_server import Reply
from tests.scenarios.sdk.driving import (
    HANDRAIL,
    World,
    call,
    calls,
    end,
    only,
    results,
    say,
    system,
    texts,
    turn,
    world,
)

pytestmark = pytest.mark.anyio


def prompts(*words: Any) -> AsyncIterator[dict[str, Any]]:
    async def each() -> AsyncIterator[dict[str, Any]]:
        for content in words:
            yield {"type": "user", "message": {"role": "user", "content": content}}

    return each()


async def ended_badly(w: World, prompt: str, **more: Any) -> tuple[list[Message], ResultError]:
    """The messages of a query whose result is an error, and the exception that the SDK makes of it."""
    seen: list[Message] = []

    async def read() -> None:
        async for message in query(prompt=prompt, options=w.options(**more)):
            seen.append(message)  # noqa: PERF401  # they are wanted although it raises

    with pytest.raises(ResultError) as caught:
        await read()
    return seen, caught.value


async def test_a_query_yields_the_beginning_the_answer_and_the_result(tmp_path: Path) -> None:
    async with world(tmp_path, say("Hello there.")) as w:
        first, answer, result = await w.ask("hi", cli_path=HANDRAIL)

    assert isinstance(first, SystemMessage)
    assert first.data["cwd"] == str(w.cwd)
    assert {"Read", "Bash", "Agent"} <= {*first.data["tools"]}
    assert {"uuid", "session_id", "model", "mcp_servers", "slash_commands", "agents", "skills", "plugins"} <= {
        *first.data
    }
    assert (first.data["permissionMode"], first.data["apiKeySource"]) == ("default", "ANTHROPIC_API_KEY")
    assert isinstance(answer, AssistantMessage)
    assert answer.uuid
    assert (answer.message_id, answer.session_id) == ("msg_1", first.data["session_id"])
    assert answer.usage == {
        "input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
    }  # fmt: skip
    assert isinstance(result, ResultMessage)
    assert (result.subtype, result.result, result.num_turns, result.is_error) == ("success", "Hello there.", 1, False)
    assert (result.stop_reason, result.terminal_reason) == ("end_turn", "completed")
    assert result.usage == {**answer.usage, "output_tokens": 5}
    assert result.model_usage
    assert {"inputTokens", "costUSD", "contextWindow"} <= {*result.model_usage["scripted"]}


async def test_a_stream_of_prompts_gets_a_result_for_each_in_their_order(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    async with world(tmp_path, say("One."), say("Two.")) as w:
        messages = await w.ask(prompts("first", [{"type": "text", "text": "second"}, image]))

        assert [result.result for result in only(messages, ResultMessage)] == ["One.", "Two."]
        assert len(system(messages, "init")) == 2
        sent = w.server.requests[1].body["messages"][-1]["content"][-1]
        assert sent["source"] == image["source"]


async def test_what_is_no_prompt_gets_an_error_as_its_result_and_the_next_one_is_answered(tmp_path: Path) -> None:
    async with world(tmp_path, say("Fine.")) as w:
        messages = await w.ask(prompts([{"type": "riddle"}], "", "a real one"))

    first, second, third = only(messages, ResultMessage)
    assert (first.is_error, first.num_turns) == (True, 0)
    assert first.errors is not None
    assert "riddle" in first.errors[0]
    assert second.errors == ["The message is empty. Give a text or a block."]
    assert third.result == "Fine."


async def test_a_client_takes_several_turns_in_one_conversation(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("the secret is 42\n")
    replies = (
        say("One."),
        Reply((Text("I look."), call(1, "Read", file_path="a.txt"))),
        say("42."),
        say("Three."),
    )
    async with world(tmp_path, *replies) as w, w.client() as client:
        info = await client.get_server_info()
        first = await turn(client, "one")
        second = await turn(client, "What is the secret?")
        usage = await client.get_context_usage()
        await client.set_model("claude-other-1")
        third = await turn(client, "three")

        assert info is not None
        assert {"commands", "agents", "models", "pid"} <= {*info}
        assert (texts(first), texts(second), texts(third)) == (["One."], ["I look.", "42."], ["Three."])
        [use] = [b for m in only(second, AssistantMessage) for b in m.content if isinstance(b, ToolUseBlock)]
        assert (use.name, use.input) == ("Read", {"file_path": "a.txt"})
        assert "the secret is 42" in results(second)["toolu_1"][0]
        assert isinstance(only(second, UserMessage)[0].tool_use_result, dict)
        assert (end(second).num_turns, end(second).permission_denials) == (2, [])
        assert usage["totalTokens"] == 15
        assert usage["maxTokens"] == 200_000
        assert [r.body["model"] for r in w.server.requests][-2:] == ["claude-sonnet-4-6", "claude-other-1"]
        assert "What is the secret?" in w.said()
        assert len({end(each).session_id for each in (first, second, third)}) == 1


async def test_sessions_go_on_by_id_as_the_newest_and_in_forks(tmp_path: Path) -> None:
    chosen = str(uuid.uuid4())
    async with world(tmp_path, *(say(f"Answer {n}.") for n in range(1, 6))) as w:
        first = end(await w.ask("remember tulips", session_id=chosen))
        resumed = end(await w.ask("and roses", resume=chosen))
        newest = end(await w.ask("and lilies", continue_conversation=True))
        fork = end(await w.ask("in a fork", resume=chosen, fork_session=True))
        again = end(await w.ask("unforked", resume=chosen))

        assert {first.session_id, resumed.session_id, newest.session_id, again.session_id} == {chosen}
        assert fork.session_id != chosen
        assert all(word in w.said(3) for word in ("tulips", "roses", "lilies", "in a fork"))
        assert "in a fork" not in w.said(4)

        with pytest.raises(Exception, match="There is no session"):
            await w.ask("hi", resume=str(uuid.uuid4()))


async def test_a_session_can_go_on_from_an_earlier_message(tmp_path: Path) -> None:
    async with world(tmp_path, say("One."), say("Two."), say("Three.")) as w:
        async with w.client(extra_args={"replay-user-messages": None}) as client:
            first = await turn(client, "tulips")
            await turn(client, "roses")
        [prompt] = only(first, UserMessage)
        [answer] = only(first, AssistantMessage)
        assert prompt.uuid
        place = {"resume": end(first).session_id, "resume_session_at": answer.uuid, "fork_session": True}
        await w.ask("lilies", **place)

        assert "tulips" in w.said()
        assert "One." in w.said()
        assert "roses" not in w.said()
        with pytest.raises(Exception, match="Resume rejected by --resume-drops-turn"):
            await w.ask("orchids", **place, resume_drops_turn=str(uuid.uuid4()))
        with pytest.raises(Exception, match="There is no message"):
            await w.ask("orchids", **{**place, "resume_session_at": str(uuid.uuid4())})


async def test_limits_end_a_run_with_an_error_that_names_them(tmp_path: Path) -> None:
    looking = [calls(call(n, "Glob", pattern="*")) for n in range(3)]
    async with world(tmp_path, *looking) as w:
        seen, error = await ended_badly(w, "go", max_turns=2)
        assert (end(seen).subtype, end(seen).terminal_reason, end(seen).num_turns) == (
            "error_max_turns", "max_turns", 2,
        )  # fmt: skip
        assert error.exit_code == 1

    dear = [calls(call(n, "Glob", pattern="*")) for n in range(3)]
    dear = [Reply(reply.content, input_tokens=1_000_000, model="claude-sonnet-4-6") for reply in dear]
    async with world(tmp_path, *dear) as w:
        seen, _ = await ended_badly(w, "go", max_budget_usd=0.5)
        assert end(seen).subtype == "error_max_budget_usd"
        assert (end(seen).total_cost_usd or 0) > 0.5
        assert len(w.server.requests) == 1


async def test_partial_messages_tell_an_answer_as_it_comes(tmp_path: Path) -> None:
    thought = Thinking("Hm, well.", {"type": "thinking", "thinking": "Hm, well.", "signature": "signed"})
    reply = Reply((thought, Text("Hello there."), call(1, "Glob", pattern="*")), piece=6)
    async with world(tmp_path, reply, say("Done.")) as w:
        messages = await w.ask("hi", include_partial_messages=True, thinking={"type": "adaptive"})

    raw = [message.event for message in only(messages, StreamEvent)]
    first = raw[: [event["type"] for event in raw].index("message_stop") + 1]
    assert [first[0]["type"], *(event["type"] for event in first[-2:])] == [
        "message_start", "message_delta", "message_stop",
    ]  # fmt: skip
    assert first[0]["message"]["usage"]["input_tokens"] == 10
    assert first[-2]["delta"]["stop_reason"] == "tool_use"
    deltas = [event["delta"] for event in first if event["type"] == "content_block_delta"]
    assert "".join(d["thinking"] for d in deltas if d["type"] == "thinking_delta") == "Hm, well."
    assert "".join(d["text"] for d in deltas if d["type"] == "text_delta") == "Hello there."
    assert json.loads("".join(d["partial_json"] for d in deltas if d["type"] == "input_json_delta")) == {"pattern": "*"}
    blocks = [block for message in only(messages, AssistantMessage) for block in message.content]
    assert isinstance(blocks[0], ThinkingBlock)
    assert (blocks[0].thinking, blocks[0].signature) == ("Hm, well.", "signed")
    assert w.server.requests[0].body["thinking"] == {"type": "adaptive"}


async def test_an_answer_fits_the_schema_that_was_asked_for(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    wanted = {"type": "json_schema", "schema": schema}
    async with world(tmp_path, say("It is three."), say('{"n": 3}')) as w:
        assert end(await w.ask("How many?", output_format=wanted)).structured_output == {"n": 3}

    async with world(tmp_path, *(say("three") for _ in range(9))) as w:
        seen, _ = await ended_badly(w, "How many?", output_format=wanted)
        assert end(seen).subtype == "error_max_structured_output_retries"
        assert end(seen).structured_output is None


@pytest.mark.parametrize(
    ("reply", "status", "kind"),
    [
        pytest.param(Reply(status=401, error="bad key"), 401, "authentication_failed", id="a key that is not taken"),
        pytest.param(Reply(status=400, error="too odd"), 400, "invalid_request", id="a request that is not taken"),
    ],
)
async def test_an_error_of_the_model_ends_the_run_and_the_conversation_goes_on(
    tmp_path: Path, reply: Reply, status: int, kind: str
) -> None:
    async with world(tmp_path, reply, say("Back again.")) as w, w.client() as client:
        failed = await turn(client, "hi")
        after = await turn(client, "and now?")

    assert (end(failed).subtype, end(failed).is_error, end(failed).api_error_status) == ("success", True, status)
    [words] = only(failed, AssistantMessage)
    assert words.error == kind
    assert reply.error in (end(failed).result or "")
    assert (end(after).result, end(after).is_error) == ("Back again.", False)


async def test_errors_that_pass_are_told_and_survived(tmp_path: Path) -> None:
    soon = {"retry-after": "0"}
    broken = say("half an answer that breaks off", piece=5, cut_after=4)
    replies = (
        Reply(status=429, error="slow down", headers=soon),
        Reply(status=500, headers=soon),
        broken,
        say("Made."),
    )
    async with world(tmp_path, *replies) as w:
        messages = await w.ask("hi")

    assert end(messages).result == "Made."
    told = [(line["attempt"], line["max_retries"], line["error_status"]) for line in system(messages, "api_retry")]
    assert told[:2] == [(1, 5, 429), (2, 5, 500)]
    assert texts(messages) == ["Made."]


async def test_the_system_prompt_is_the_callers_ours_or_both(tmp_path: Path) -> None:
    file = tmp_path / "prompt.md"
    file.write_text("You sing.")
    chosen: list[tuple[Any, str, bool]] = [
        (None, "", False),
        ("You are a poet.", "You are a poet.", False),
        ({"type": "preset", "preset": "claude_code"}, "", True),
        ({"type": "preset", "preset": "claude_code", "append": "Rhyme."}, "Rhyme.", True),
        ({"type": "file", "path": str(file)}, "You sing.", False),
    ]
    async with world(tmp_path, *(say("Yes.") for _ in chosen)) as w:
        for number, (prompt, said, ours) in enumerate(chosen):
            await w.ask("hi", system_prompt=prompt)
            system_text = json.dumps(w.server.requests[number].body.get("system", []))
            assert said in system_text
            assert ("works on a person" in system_text) is ours


async def test_commands_and_memory_of_people_are_part_of_a_prompt_unless_it_is_verbatim(tmp_path: Path) -> None:
    async with world(tmp_path, say("A."), say("B."), say("C.")) as w:
        (w.cwd / ".claude" / "commands").mkdir(parents=True)
        (w.cwd / ".claude" / "commands" / "greet.md").write_text("---\ndescription: Greets\n---\nGreet $1 in $0.\n")
        (w.cwd / "CLAUDE.md").write_text("Always be brief.")
        first = await w.ask("/greet French Ada")
        await w.ask("/greet French Ada", verbatim_prompts=True)
        await w.ask("hi", setting_sources=[])

        assert system(first, "init")[0]["slash_commands"][0] == "greet"
        assert "Greet Ada in French." in w.said(0)
        assert "Always be brief." in w.said(0)
        assert "Greet Ada" not in w.said(1)
        assert "/greet French Ada" in w.said(1)
        assert "Always be brief." not in w.said(2)


async def test_what_is_too_long_for_a_line_is_cut_for_the_program_and_whole_for_the_model(tmp_path: Path) -> None:
    long = "語" * 400_000  # more bytes than a line may have, and fewer tokens than fill the model's window
    async with world(tmp_path, say(long), say("Short.")) as w, w.client() as client:
        first = await turn(client, "Tell me everything.")
        second = await turn(client, "And in short?")

        assert long in json.dumps(w.server.requests[1].body["messages"], ensure_ascii=False)
    [told] = texts(first)
    assert len(told.encode()) < 1_000_000
    assert "more characters left out of this line" in told
    assert (end(first).is_error, end(second).result) == (False, "Short.")


async def test_messages_that_come_during_a_turn_wait_for_their_own(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with world(tmp_path, say("One.", gates={2: gate}), say("Two.")) as w, w.client() as client:
        await client.query("first")
        await client.query("second")
        assert (await client.get_mcp_status())["mcpServers"] == []  # answered while the model still speaks
        gate.set()
        first = [message async for message in client.receive_response()]
        second = [message async for message in client.receive_response()]

    assert (end(first).result, end(second).result) == ("One.", "Two.")


async def test_what_the_sdk_asks_that_is_not_known_is_an_error_and_not_silence(tmp_path: Path) -> None:
    async with world(tmp_path, say("Fine.")) as w, w.client() as client:
        assert client._query is not None
        with pytest.raises(Exception, match="'dance' is not a request"):
            await client._query._send_control_request({"subtype": "dance"})
        with pytest.raises(Exception, match="there is no mode 'yolo'"):
            await client.set_permission_mode("yolo")  # type: ignore[arg-type]  # that is the point
        with pytest.raises(Exception, match="no background task"):
            await client.stop_task("none")
        assert end(await turn(client, "hi")).result == "Fine."


async def test_an_unknown_option_of_a_newer_sdk_is_warned_about(tmp_path: Path) -> None:
    (tmp_path / "plugin").mkdir()
    async with world(tmp_path, say("Fine.")) as w:
        messages = await w.ask(
            "hi",
            extra_args={"from-the-future": "x"},
            tools=["Read", "CrystalBall"],
            plugins=[{"type": "local", "path": str(tmp_path / "plugin")}],
            task_budget={"total": 1000},
            thinking={"type": "adaptive", "display": "omitted"},
        )
        sent = w.server.requests[0]

    assert end(messages).result == "Fine."
    assert system(messages, "init")[0]["tools"] == ["Read"]
    assert any("--from-the-future" in line for line in w.errors)
    assert any("CrystalBall" in line for line in w.errors)
    assert sent.body["output_config"]["task_budget"] == {"type": "tokens", "total": 1000}
    assert "task-budgets-2026-03-13" in sent.headers["anthropic-beta"]
    assert sent.body["thinking"] == {"type": "adaptive", "display": "omitted"}


async def test_a_start_that_fails_tells_why(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        with pytest.raises(Exception, match="'nowhere' is not a folder"):
            await w.ask("hi", add_dirs=["nowhere"])


async def test_a_store_of_the_program_gets_every_record_and_can_bring_a_session_back(tmp_path: Path) -> None:
    store = InMemorySessionStore()
    config = tmp_path / "config"
    reading = calls(
        call(2, "Agent", description="Look", prompt="Read a.txt", subagent_type="Explore", run_in_background=False)
    )
    replies = [reading, calls(call(3, "Read", file_path="a.txt")), say("Tulips."), say("It says tulips."), say("B.")]
    more: dict[str, Any] = {"session_store": store, "env": {"CLAUDE_CONFIG_DIR": str(config)}}
    async with world(tmp_path, *replies, say("C.")) as w:
        (w.cwd / "a.txt").write_text("tulips\n")
        first = end(await w.ask("What does it say?", **more))
        key: Any = {"project_key": project_key_for_directory(w.cwd), "session_id": first.session_id}
        kept = await store.load(key)
        [inner] = await store.list_subkeys(key)
        said = await get_session_messages_from_store(store, first.session_id, directory=str(w.cwd))
        [own] = (w.state / "sessions").glob("*/*.jsonl")
        assert kept == [json.loads(line) for line in own.read_text().splitlines()]
        [own] = (w.state / "sessions").glob("*/*/subagents/*.jsonl")
        key["subpath"] = inner
        aside = await store.load(key)
        assert aside == [json.loads(line) for line in own.read_text().splitlines()]
        assert [each.type for each in said] == ["user", "assistant", "user", "assistant"]
        shutil.rmtree(w.state)

        second = end(await w.ask("Go on.", resume=first.session_id, **more))
        again = end(await w.ask("And on.", continue_conversation=True, **more))

        assert {first.session_id, second.session_id, again.session_id} == {first.session_id}
        assert all(text in w.said() for text in ("What does it say?", "It says tulips.", "Go on.", "B.", "And on."))
        assert not config.exists()
