"""A first day with model servers, programs that read our output, and programs that drive us."""

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import create_sdk_mcp_server, get_session_messages, list_sessions, tool

from handrail.conversation.blocks import Text, ToolUse
from handrail.loop import silence
from handrail.loop.events import Notice, RunEnded
from handrail.session.agent import Agent
from handrail.testing.model_server import ModelServer, Reply
from tests.forked import program
from tests.scenarios.sdk.driving import World, call, calls, end, say, system, world

pytestmark = pytest.mark.anyio

HELLO = Reply((Text("Hello there."),))
PAGE = b"<!DOCTYPE html><html><head><title>Welcome to nginx</title></head><body><h1>It works</h1></body></html>"


class Ran:
    """What a run has left behind."""

    def __init__(self, code: int | None, out: bytes, errors: bytes) -> None:
        self.code, self.out, self.errors = code, out.decode(), errors.decode()

    @property
    def result(self) -> dict[str, Any]:
        last: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        assert last["type"] == "result"
        return last


async def handrail(folder: Path, env: Mapping[str, str], *arguments: str) -> Ran:
    """`handrail -p hi` to its end."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "OPENAI_"))}
    process = await asyncio.create_subprocess_exec(
        program(),
        *("-p", "hi", *arguments),
        cwd=folder,
        env={**own, "HOME": str(folder), "HANDRAIL_STATE_DIR": str(folder / "state"), **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    with anyio.fail_after(60):
        out, errors = await process.communicate()
    return Ran(process.returncode, out, errors)


@asynccontextmanager
async def raw_server(answer: bytes) -> AsyncIterator[str]:
    """A server that is not a model: it sends these bytes to every request, or never says anything."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if answer:
            writer.close()
        else:
            await reader.read()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 24)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def http(status: str, kind: str, body: bytes, *headers: bytes) -> bytes:
    lines = (f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}".encode(), *headers)
    return b"\r\n".join((*lines, b"connection: close", b"", body))


# What a model server says


async def test_lines_of_a_run_tell_of_commands_in_the_background_and_end_with_the_result(tmp_path: Path) -> None:
    short = ToolUse("t1", "Bash", {"command": "true", "run_in_background": True, "description": "Look around"})
    long = ToolUse("t2", "Bash", {"command": "sleep 600", "run_in_background": True, "description": "Wait"})
    replies = [Reply((short,)), Reply((long,)), HELLO]
    async with ModelServer(replies, strict=True) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        flags = ("--output-format", "stream-json", "--allowedTools", "Bash")
        ran = await handrail(tmp_path, env, *flags)

    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert (ran.code, lines[-1]["type"]) == (0, "result")
    begun = [line for line in lines if line.get("subtype") == "task_started"]
    over = {line["task_id"]: line for line in lines if line.get("subtype") == "task_notification"}
    listed = [[task["description"] for task in each["tasks"]] for each in lines if "tasks" in each]
    assert [(line["tool_use_id"], line["task_type"]) for line in begun] == [("t1", "local_bash"), ("t2", "local_bash")]
    assert [over[line["task_id"]]["status"] for line in begun] == ["completed", "stopped"]
    assert (["Look around"] in listed, listed[-1]) == (True, [])


async def test_a_port_at_which_nothing_listens_is_told_at_once_and_not_tried_for_long(tmp_path: Path) -> None:
    async with ModelServer([]) as server:
        url = server.url
    ran = await handrail(tmp_path, {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"}, "--output-format=stream-json")

    retries = [line for line in map(json.loads, ran.out.splitlines()) if line.get("subtype") == "api_retry"]
    assert [(line["attempt"], line["max_retries"]) for line in retries] == [(1, 2), (2, 2)]
    assert "Is the server running, and is its address right?" in ran.result["result"]


@pytest.mark.parametrize(
    ("answer", "env", "says"),
    [
        pytest.param(
            http("404 Not Found", "text/html", PAGE, b"x-request-id: req-77"),
            {},
            ("status 404", "/chat/completions", "model 'my-model'", "request id req-77", "try {url}/v1"),
            id="the /v1 is missing",
        ),
        pytest.param(
            http("200 OK", "text/html", PAGE),
            {},
            ("a web page, 'Welcome to nginx'", "/chat/completions", "try {url}/v1"),
            id="a page that says it is fine",
        ),
        pytest.param(
            http("200 OK", "application/json", b'{"status": "up", "version": 3}'),
            {},
            ("not an answer of a model", "status, version", "try {url}/v1"),
            id="another API",
        ),
        pytest.param(
            http("401 Unauthorized", "application/json", b'{"error": {"message": "no key"}}'),
            {"OPENAI_KEY": "sk-1"},
            ("no key (status 401", "set OPENAI_API_KEY", "OPENAI_KEY is set, but that name is not read"),
            id="the key has another name",
        ),
        pytest.param(
            http("403 Forbidden", "application/json", b'{"error": {"message": "go away"}}'),
            {"OPENAI_API_KEY": "sk-ant-abc"},
            ("go away", "The key in OPENAI_API_KEY looks like one for Anthropic's API"),
            id="the key of another vendor",
        ),
        pytest.param(
            http("404 Not Found", "application/json", b'{"error": {"message": "model my-model not found"}}'),
            {},
            ("The server has no model 'my-model'", "--model"),
            id="a model that it does not have",
        ),
        pytest.param(
            b"",
            {"API_TIMEOUT_MS": "300"},
            ("took the request and said nothing for 0.3 s", "/chat/completions", "API_TIMEOUT_MS"),
            id="a server that never answers",
        ),
    ],
)
async def test_an_error_of_a_server_says_where_it_happened_and_what_to_try(
    tmp_path: Path, answer: bytes, env: dict[str, str], says: Iterable[str]
) -> None:
    async with raw_server(answer) as url:
        variables = {"OPENAI_BASE_URL": url, "OPENAI_MODEL": "my-model", **env}
        ran = await handrail(tmp_path, variables, "--output-format", "json")

    assert ran.code == 1
    assert ran.result["is_error"] is True
    for each in says:
        assert each.format(url=url) in ran.result["result"]
    assert "<" not in ran.result["result"] + ran.errors
    assert "sk-" not in ran.out + ran.errors


async def test_a_silent_model_is_told_of_while_it_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "PATIENCE", 0.01)
    told = asyncio.Event()
    async with ModelServer([Reply((Text("At last."),), gates={0: told})]) as server:
        agent = Agent(model="my-model", builtin_tools=False, env={"ANTHROPIC_BASE_URL": server.url})
        events: list[Any] = []
        async with agent:
            async for event in agent.run("hi"):
                events.append(event)
                if isinstance(event, Notice):
                    told.set()

    [notice] = [event for event in events if isinstance(event, Notice)]
    assert notice.text.startswith("my-model has said nothing for")
    assert isinstance(events[-1], RunEnded)
    assert events[-1].text == "At last."


@pytest.mark.parametrize(
    ("arguments", "env", "code", "says"),
    [
        pytest.param((), {}, 1, "There is no key for", id="no model"),
        pytest.param((), {"CLAUDE_API_KEY": "k"}, 1, "CLAUDE_API_KEY is set, but that name is not read", id="odd key"),
        pytest.param(
            ("--settings", "{1"), {}, 1, "--settings:1: a key in double quotes", id="settings that cannot be read"
        ),
        pytest.param(("--max-turns", "many"), {}, 2, "--max-turns", id="a flag value that cannot be right"),
        pytest.param(("--disalowedTools", "Bash"), {}, 2, "Did you mean", id="a misspelt flag"),
        pytest.param(("--resume", "nothing"), {}, 1, "There is no session", id="no such session"),
    ],
)
@pytest.mark.parametrize("form", ["json", "stream-json"])
async def test_a_run_that_cannot_begin_ends_with_a_result_too(
    tmp_path: Path, arguments: tuple[str, ...], env: dict[str, str], code: int, says: str, form: str
) -> None:
    ran = await handrail(tmp_path, env, *arguments, "--output-format", form)

    assert ran.code == code
    assert ran.result["is_error"] is True
    assert says in ran.result["result"]
    assert says in ran.errors


async def test_a_person_without_a_model_is_told_of_the_demo(tmp_path: Path) -> None:
    assert "handrail demo needs no model" in (await handrail(tmp_path, {})).errors


async def test_odd_blocks_fields_and_figures_of_a_server_do_no_harm(tmp_path: Path) -> None:
    events: tuple[dict[str, Any], ...] = (
        {"type": "message_start", "message": {"id": 7, "model": ["x"], "usage": {"input_tokens": -1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": ["hologram"], "light": 1}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Fine."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "dance_delta", "step": 1e999}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 10**30}},
        {"type": "message_stop"},
    )
    raw = tuple(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    async with ModelServer([Reply(raw=raw)]) as server:
        ran = await handrail(tmp_path, {"ANTHROPIC_BASE_URL": server.url}, "--output-format", "stream-json")

    assert (ran.code, ran.result["result"], ran.result["usage"]["output_tokens"]) == (0, "Fine.", 0)
    assert "Traceback" not in ran.errors


# What can be set


async def test_headers_windows_and_prices_are_what_the_user_says(tmp_path: Path) -> None:
    facts = {"my-model": {"contextWindow": 50_000, "inputPrice": 100_000, "outputPrice": 1_000_000}}
    async with ModelServer([Reply((Text("Hello."),), model="my-model-7b")]) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_CUSTOM_HEADERS": "X-Team: blue\nX-Cost-Centre: 7"}
        ran = await handrail(
            tmp_path, env, "--model", "my-model", "--settings", json.dumps({"models": facts}), "--output-format", "json"
        )

    sent = server.requests[0].headers
    assert (sent["x-team"], sent["x-cost-centre"]) == ("blue", "7")
    assert ran.result["total_cost_usd"] == pytest.approx(10 * 0.1 + 5 * 1.0)
    assert ran.result["modelUsage"]["my-model-7b"]["contextWindow"] == 50_000


@pytest.mark.parametrize("provider", ["ANTHROPIC", "OPENAI"])
async def test_any_server_can_answer_in_the_form_that_was_asked_for(tmp_path: Path, provider: str) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    replies = [
        Reply((ToolUse("t1", "StructuredOutput", {"n": "many"}),)),
        Reply((Text("It is seven."), ToolUse("t2", "StructuredOutput", {"n": 7}))),
    ]
    async with ModelServer(replies, strict=True) as server:
        env = {f"{provider}_BASE_URL": server.url + ("" if provider == "ANTHROPIC" else "/v1")}
        ran = await handrail(tmp_path, env, "--json-schema", json.dumps(schema), "--output-format", "json")

    assert (ran.code, ran.result["structured_output"], ran.result["result"]) == (0, {"n": 7}, "It is seven.")
    assert not {"response_format", "output_config"} & {*server.requests[0].body}


# What programs that drive us see


async def test_the_first_line_lists_every_tool_also_those_held_back_and_those_of_the_program(tmp_path: Path) -> None:
    @tool("greet", "Greets.", {"name": str})
    async def greet(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"Hello {given['name']}"}]}

    async with world(tmp_path, say("Hi.")) as w:
        messages = await w.ask("hi", mcp_servers={"own": create_sdk_mcp_server("own", tools=[greet])})

    [first] = system(messages, "init")
    held_back = {each["name"] for each in w.server.requests[0].body["tools"]}
    assert {"Read", "TaskCreate", "mcp__own__greet"} <= {*first["tools"]}
    assert "TaskCreate" not in held_back


def kept(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own functions look in the home folder of this process."""
    monkeypatch.setenv("HOME", str(w.home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


async def test_the_functions_of_the_sdk_find_the_session_that_it_has_driven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("x\n")
    reading = calls(call(1, "Read", file_path="a.txt"), call(2, "Glob", pattern="*.txt"))
    async with world(tmp_path, reading, say("It holds x."), say("Gladly.")) as w:
        kept(w, monkeypatch)
        first = end(await w.ask("What is in a.txt?"))
        await w.ask("Thank you", resume=first.session_id)

        [found] = list_sessions(str(w.cwd))
        messages = get_session_messages(first.session_id, str(w.cwd))

    assert (found.session_id, found.first_prompt, found.cwd) == (first.session_id, "What is in a.txt?", str(w.cwd))
    said = [(each.type, part["type"]) for each in messages for part in each.message["content"]]
    # the first result may come before the second call is complete
    use, result = ("assistant", "tool_use"), ("user", "tool_result")
    assert said[1:5] in ([use, use, result, result], [use, result, use, result])
    assert [said[0], *said[5:]] == [("user", "text"), ("assistant", "text"), ("user", "text"), ("assistant", "text")]
    [copy] = (w.home / ".claude" / "projects").glob("*/*.jsonl")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


async def test_a_setting_keeps_the_copy_away_and_a_deleted_session_takes_its_copy_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, say("One."), say("Two.")) as w:
        kept(w, monkeypatch)
        away = end(await w.ask("hi", settings=json.dumps({"sdkSessionCopy": False})))
        assert get_session_messages(away.session_id, str(w.cwd)) == []
        there = end(await w.ask("hi"))
        assert len(get_session_messages(there.session_id, str(w.cwd))) == 2

        deleting = await asyncio.create_subprocess_exec(
            program(), "sessions", "rm", there.session_id, cwd=w.cwd, env={**os.environ, **w.env}
        )
        await deleting.wait()

    assert list_sessions(str(w.cwd)) == []
