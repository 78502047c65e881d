"""`handrail -p`, as a process, against a model server on loopback."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.forked import program, unmeasured

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

HELLO = Reply((Text("Hello there."),))
READ = Reply((Text("I look."), ToolUse("t1", "Read", {"file_path": "a.txt"})))


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    errors: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


def variables(server: ModelServer, folder: Path, provider: str = "ANTHROPIC") -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "OPENAI_"))}
    url = server.url + ("" if provider == "ANTHROPIC" else "/v1")
    return {
        **own,
        f"{provider}_BASE_URL": url,
        "HANDRAIL_STATE_DIR": f"{folder}-state",
        "HOME": str(folder / "home"),
    }


async def started(
    folder: Path, environment: dict[str, str], *arguments: str, anew: bool = False
) -> asyncio.subprocess.Process:
    """A fork of handrail; with `anew` a new interpreter, as people start it."""
    return await asyncio.create_subprocess_exec(
        *((sys.executable, "-m", "handrail") if anew else (program(),)),
        *arguments,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def handrail(
    replies: Iterable[Reply],
    folder: Path,
    *arguments: str,
    stdin: str = "",
    provider: str = "ANTHROPIC",
    anew: bool = False,
) -> tuple[Ran, ModelServer]:
    async with ModelServer(replies, strict=True) as server:
        process = await started(folder, variables(server, folder, provider), *arguments, anew=anew)
        out, errors = await asyncio.wait_for(process.communicate(stdin.encode()), 60)
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), errors.decode()), server


@pytest.mark.parametrize("provider", ["ANTHROPIC", "OPENAI"])
async def test_a_prompt_is_answered_in_text_without_key_and_model_name(tmp_path: Path, provider: str) -> None:
    ran, server = await handrail([HELLO], tmp_path, "-p", "Say hello", provider=provider, anew=True)

    assert (ran.code, ran.out, ran.errors) == (0, "Hello there.\n", "")
    assert "Say hello" in server.requests[0].raw.decode()


async def test_tools_are_used_and_the_folder_is_described(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the secret is 42\n")
    (tmp_path / "AGENTS.md").write_text("Always be brief.")

    ran, server = await handrail([READ, HELLO], tmp_path, "-p", "What is the secret?")

    assert (ran.code, ran.out) == (0, "Hello there.\n")
    first, second = (request.raw.decode() for request in server.requests)
    assert "Always be brief." in first
    assert str(tmp_path) in first
    assert "the secret is 42" in second


@pytest.mark.proves("R5")
async def test_the_prefix_of_consecutive_requests_is_the_same_and_debug_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")

    ran, server = await handrail([READ, HELLO], tmp_path, "-p", "go", "--debug")

    first, second = (request.body for request in server.requests)
    assert first["tools"] == second["tools"]
    assert first["system"] == second["system"]
    assert "is new" in ran.errors
    assert "is unchanged" in ran.errors
    assert "CHANGED" not in ran.errors


@pytest.mark.parametrize("flags", [("--output-format", "json"), ("--json",)], ids=["long", "short"])
async def test_json_output_is_one_result(flags: tuple[str, ...], tmp_path: Path) -> None:
    ran, _ = await handrail([HELLO], tmp_path, "-p", "hi", *flags)

    [result] = ran.lines
    assert {key: result[key] for key in ("type", "subtype", "is_error", "result", "num_turns", "terminal_reason")} == {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "Hello there.",
        "num_turns": 1,
        "terminal_reason": "completed",
    }
    assert result["usage"] == {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
    }


async def test_stream_json_tells_everything_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")

    ran, _ = await handrail([READ, HELLO], tmp_path, "-p", "go", "--output-format", "stream-json")

    assert [(line["type"], line.get("subtype")) for line in ran.lines] == [
        ("system", "init"),
        ("assistant", None),
        ("assistant", None),
        ("user", None),
        ("assistant", None),
        ("result", "success"),
    ]
    init, said, asked, answered, _, _ = ran.lines
    assert "Read" in init["tools"]
    assert said["message"]["content"] == [{"type": "text", "text": "I look."}]
    assert asked["message"]["content"][0]["name"] == "Read"
    assert answered["message"]["content"][0]["tool_use_id"] == "t1"
    assert len({line["session_id"] for line in ran.lines}) == 1
    assert len({line["uuid"] for line in ran.lines}) == len(ran.lines)


async def test_partial_messages_come_as_raw_events(tmp_path: Path) -> None:
    reply = Reply((Text("Hello there."),), piece=5)

    ran, _ = await handrail(
        [reply], tmp_path, "-p", "go", "--output-format", "stream-json", "--include-partial-messages"
    )

    raw = [line["event"] for line in ran.lines if line["type"] == "stream_event"]
    assert "".join(event["delta"]["text"] for event in raw if event["type"] == "content_block_delta") == "Hello there."
    assert raw[0]["type"] == "message_start"
    assert raw[-1]["type"] == "message_stop"


async def test_each_line_leaves_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    gate = asyncio.Event()
    held = Reply((Text("Hello there."),), gates={0: gate})
    async with ModelServer([READ, held]) as server:
        arguments = ("-p", "go", "--output-format", "stream-json")
        process = await started(tmp_path, variables(server, tmp_path), *arguments)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()

        early = [json.loads(await asyncio.wait_for(process.stdout.readline(), 30))["type"] for _ in range(4)]

        assert early == ["system", "assistant", "assistant", "user"]
        gate.set()
        assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_what_is_piped_in_is_added_to_the_prompt(tmp_path: Path) -> None:
    ran, server = await handrail([HELLO], tmp_path, "-p", "Summarise this:", stdin="a long story\n")

    assert ran.code == 0
    words = server.requests[0].body["messages"][-1]["content"][-1]["text"]
    assert words == "Summarise this:\n\na long story"


async def test_a_prompt_may_come_from_a_pipe_alone(tmp_path: Path) -> None:
    ran, server = await handrail([HELLO], tmp_path, "-p", stdin="only this\n")

    assert ran.code == 0
    assert server.requests[0].body["messages"][-1]["content"][-1]["text"] == "only this"


@pytest.mark.parametrize(("said", "taken"), [(b"caf\xe9", "caf\ufffd"), ("café".encode(), "café")])
async def test_a_prompt_in_another_encoding_is_taken_as_far_as_it_can_be_read(
    tmp_path: Path, said: bytes, taken: str
) -> None:
    async with ModelServer([HELLO]) as server:
        environment = {**variables(server, tmp_path), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        process = await started(tmp_path, environment, "-p", os.fsdecode(said))
        _, errors = await asyncio.wait_for(process.communicate(b""), 60)

    assert (process.returncode, errors) == (0, b"")
    assert server.requests[0].body["messages"][-1]["content"][-1]["text"] == taken


async def test_the_system_prompt_can_be_replaced_and_added_to(tmp_path: Path) -> None:
    _, server = await handrail(
        [HELLO], tmp_path, "-p", "hi", "--system-prompt", "You are a poet.", "--append-system-prompt", "Rhyme."
    )

    assert [part["text"] for part in server.requests[0].body["system"]] == ["You are a poet.", "Rhyme."]


async def test_tools_can_be_chosen(tmp_path: Path) -> None:
    _, server = await handrail([HELLO], tmp_path, "-p", "hi", "--tools", "Glob")
    assert [tool["name"] for tool in server.requests[0].body["tools"]] == ["Glob"]

    _, server = await handrail([HELLO], tmp_path, "-p", "hi", "--tools", "")
    assert not server.requests[0].body.get("tools")


async def test_disallowed_tools_are_not_offered(tmp_path: Path) -> None:
    _, server = await handrail([HELLO], tmp_path, "-p", "hi", "--disallowedTools", "Read,Sleep")

    offered = {tool["name"] for tool in server.requests[0].body["tools"]}
    assert "Glob" in offered
    assert not offered & {"Read", "Sleep"}


async def test_the_value_of_an_unknown_flag_does_not_join_the_prompt(tmp_path: Path) -> None:
    ran, server = await handrail([HELLO], tmp_path, "-p", "hi", "--from-the-future", "value")

    assert server.requests[0].body["messages"][-1]["content"][-1]["text"] == "hi"
    assert "'value' was taken for the value of an unknown flag" in ran.errors


async def test_files_outside_the_folder_and_secrets_are_refused_to_the_model(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    asked = Reply((ToolUse("a", "Read", {"file_path": ".env"}), ToolUse("b", "Read", {"file_path": "/etc/passwd"})))

    ran, _ = await handrail([asked, HELLO], tmp_path, "-p", "hi", "--output-format", "json")

    assert [denial["tool_use_id"] for denial in ran.lines[0]["permission_denials"]] == ["a", "b"]


async def test_an_answer_can_be_made_to_fit_a_schema(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    ran, _ = await handrail(
        [Reply((Text('{"n": 7}'),))],
        tmp_path,
        *("-p", "hi", "--output-format", "json", "--json-schema", json.dumps(schema)),
    )

    assert ran.lines[0]["structured_output"] == {"n": 7}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(["-p"], 1, "there is no prompt", id="no prompt"),
        pytest.param(["-p", "hi", "--max-turns", "0"], 2, "not a whole number above 0", id="a limit of nothing"),
        pytest.param(
            ["-p", "hi", "--max-turns", "x"], 2, "'x' is not a whole number above 0", id="a limit that is not a number"
        ),
        pytest.param(["-p", "hi", "--max-budget-usd", "-1"], 2, "not an amount above 0", id="a negative budget"),
        pytest.param(
            ["-p", "hi", "--max-budget-usd", "x"], 2, "'x' is not an amount above 0", id="a budget of letters"
        ),
        pytest.param(
            ["-p", "hi", "--max-thinking-tokens", "x"], 2, "'x' is not a whole number", id="thoughts of letters"
        ),
        pytest.param(["-p", "hi", "--output-format", "xml"], 2, "invalid choice", id="an unknown format"),
        pytest.param(["-p", "hi", "--json-schema", "{"], 2, "it is not JSON", id="a broken schema"),
        pytest.param(["-p", "hi", "--json-schema", "[]"], 2, "it is not a JSON object", id="a schema that is a list"),
        pytest.param(["-p", "hi", "--replay", "no.jsonl"], 1, "no.jsonl", id="a missing cassette"),
        pytest.param(["-p", "hi", "--max-turn", "1"], 2, "Did you mean --max-turns?", id="a slip in a limit"),
        pytest.param(["--verison"], 2, "Did you mean --version?", id="a slip in the version"),
        pytest.param(["-p", "hi", "--disallowedTools", "Read("], 2, "bracket is not closed", id="a limit that is lost"),
        pytest.param(["-p", "hi", "--permission-mode", "yolo"], 2, "invalid choice", id="an unknown mode"),
        pytest.param(["-p", "hi", "--settings", "{x}"], 1, "--settings:1: ", id="broken settings"),
        pytest.param(["-p", "hi", "--settings", "no.json"], 1, "there is no file 'no.json'", id="missing settings"),
        pytest.param(["-p", "hi", "--setting-sources", "me"], 1, "there is no source 'me'", id="an unknown source"),
        pytest.param(["-p", "hi", "--add-dir", "none"], 1, "'none' is not a folder", id="a folder that is none"),
        pytest.param(["-p", "hi", "--record", "a", "--replay", "b"], 2, "cannot be used together", id="both tapes"),
        pytest.param(
            ["-p", "hi", "--mcp-config", "~/no.json"],
            1,
            "--mcp-config: '~/no.json' cannot be read: No such file or directory. Give a JSON file, or JSON: {\"mcp",
            id="missing servers",
        ),
        pytest.param(["-p", "hi", "--mcp-config", "{x"], 1, "the text is not JSON: ", id="broken servers"),
        pytest.param(["-p", "hi", "--mcp-config", "{}"], 1, "the text names no servers. Write {", id="no servers"),
        pytest.param(["--model", "x"], 2, "a conversation needs a terminal", id="no -p"),
    ],
)
async def test_what_cannot_be_done_is_said(arguments: list[str], code: int, says: str, tmp_path: Path) -> None:
    ran, server = await handrail([], tmp_path, *arguments)

    assert (ran.code, ran.out) == (code, "")
    assert says in ran.errors
    assert server.requests == []


@pytest.mark.parametrize("flags", [("--output-format", "json"), ("--output-format=stream-json",), ("--json",)], ids=str)
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(["-p"], 1, "there is no prompt", id="no prompt"),
        pytest.param(["-p", "hi", "--max-turns", "0"], 2, "not a whole number above 0", id="a wrong flag"),
        pytest.param(["-p", "hi", "--replay", "no.jsonl"], 1, "no.jsonl", id="no model"),
    ],
)
async def test_a_run_that_cannot_start_prints_a_result_where_json_is_asked_for(
    arguments: list[str], code: int, says: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    ran, _ = await handrail([], tmp_path, *arguments, *flags)

    assert (ran.code, len(ran.lines), ran.lines[0]["is_error"]) == (code, 1, True)
    assert says in ran.lines[0]["result"]


async def test_unknown_flags_are_warned_about(tmp_path: Path) -> None:
    ran, _ = await handrail([HELLO], tmp_path, "-p", "hi", "--from-the-future")

    assert (ran.code, ran.out) == (0, "Hello there.\n")
    assert "--from-the-future is not known" in ran.errors


async def test_tools_that_are_not_here_are_warned_about_and_the_others_are_used(tmp_path: Path) -> None:
    ran, server = await handrail([HELLO], tmp_path, "-p", "hi", "--tools", "Reed,Glob")

    assert [tool["name"] for tool in server.requests[0].body["tools"]] == ["Glob"]
    assert "there is no built-in tool 'Reed'" in ran.errors


async def test_an_error_of_the_server_ends_with_1_and_its_reason(tmp_path: Path) -> None:
    refusal = Reply(status=401, error="invalid key")

    ran, server = await handrail([refusal], tmp_path, "-p", "hi", "--output-format", "json")

    assert ran.code == 1
    assert ran.lines[0]["is_error"] is True
    assert ran.lines[0]["api_error_status"] == 401
    assert "invalid key" in ran.lines[0]["result"]
    assert len(server.requests) == 1


async def test_a_limit_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")

    ran, _ = await handrail([READ, HELLO], tmp_path, "-p", "go", "--max-turns", "1", "--output-format", "json")

    assert ran.code == 1
    assert ran.lines[0]["subtype"] == "error_max_turns"


@pytest.mark.parametrize(("number", "code", "anew"), [(signal.SIGINT, 130, True), (signal.SIGTERM, 143, False)])
async def test_a_signal_stops_the_run_with_its_result(tmp_path: Path, number: int, code: int, anew: bool) -> None:
    silent = Reply((Text("never"),), stall_after=1)
    async with ModelServer([silent]) as server:
        arguments = ("-p", "hi", "--output-format", "json")
        process = await started(tmp_path, variables(server, tmp_path), *arguments, anew=anew)
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.wait_for(server.stalled.wait(), 30)

        process.send_signal(number)

        out, errors = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == code
        assert json.loads(out)["terminal_reason"] == "aborted_streaming"
        assert errors == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["text", "json"])
async def test_output_that_cannot_be_written_is_told(tmp_path: Path, flags: tuple[str, ...]) -> None:
    async with ModelServer([HELLO]) as server:
        with Path("/dev/full").open("wb") as full:
            process = await asyncio.create_subprocess_exec(
                program(),
                *("-p", "hi", *flags),
                cwd=tmp_path,
                env=variables(server, tmp_path),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=full,
                stderr=asyncio.subprocess.PIPE,
            )
            _, errors = await process.communicate()

    assert process.returncode == 1
    assert errors.decode() == f"handrail: The output cannot be written: {os.strerror(errno.ENOSPC)}.\n"


async def test_a_run_can_be_recorded_and_replayed_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    recorded, server = await handrail([READ, HELLO], tmp_path, "-p", "go", "--record", "run.jsonl")
    assert recorded.code == 0
    assert len(server.requests) == 2

    replayed, server = await handrail([], tmp_path, "-p", "go", "--replay", "run.jsonl")

    assert (replayed.code, replayed.out) == (0, "Hello there.\n")
    assert server.requests == []


async def test_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    await handrail([HELLO], tmp_path, "-p", "hi")

    assert list(tmp_path.iterdir()) == []

    await handrail([HELLO], tmp_path, "-p", "hi", "--no-session-persistence")

    assert len([*Path(f"{tmp_path}-state").glob("sessions/*/*.jsonl")]) == 1


def test_the_first_request_waits_for_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "def connecting(event, _arguments):\n"
        "    if event == 'socket.connect':\n"
        "        os.write(1, ' '.join(sys.modules).encode())\n"
        "        os._exit(0)\n"
        "sys.addaudithook(connecting)\n"
        "sys.argv = ['handrail', '-p', 'hi', '--base-url', 'http://127.0.0.1:9', '--provider', 'anthropic']\n"
        "from handrail.__main__ import main\n"
        "main()"
    )
    # whoever measures coverage in there loads modules of its own
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=unmeasured(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = set(process.stdout.split())
    assert "handrail.http.client" in loaded
    small = {f"handrail.permissions.{name}" for name in ("facts", "modes", "wildcards")}
    assert {name for name in loaded if name.startswith("handrail.permissions.")} <= small
    assert {name for name in loaded if name.startswith("handrail.builtin.")} <= {
        "handrail.builtin.definitions",
        "handrail.builtin.services",
        "handrail.builtin.table",
    }
    assert not any(name.startswith("handrail.lsp") for name in loaded)
    assert not loaded & {
        "pydantic",
        "pydantic_core",
        "difflib",
        "importlib.metadata",
        "importlib.resources",
        "platformdirs",
        "tempfile",
        "tomllib",
        "uuid",
        "httpx2",
        "httpcore2",
        "rich",
        "prompt_toolkit",
        "jsonschema_rs",
        "tree_sitter",
        "mcp",
        "anyio",
    }


# How calls are run


@pytest.mark.proves("B3")
async def test_settings_and_variables_drop_whole_families_of_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def offered(*arguments: str) -> set[str]:
        _, server = await handrail([HELLO], tmp_path, "-p", "hi", *arguments)
        return {tool["name"] for tool in server.requests[0].body["tools"]}

    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")
    usual = await offered()
    assert {"Agent", "TaskCreate", "TaskStop"} <= usual
    fewer = await offered("--settings", '{"features": {"agents": false, "background": false}}')
    agents = {"Agent", "ListAgents", "SendMessage", "TeamCreate", "TeamDelete"}
    assert usual - fewer == {*agents, "Monitor", "TaskOutput", "TaskStop"}
    monkeypatch.setenv("HANDRAIL_FEATURES", "-task-list")
    assert usual - await offered() == {"TaskCreate", "TaskGet", "TaskList", "TaskUpdate"}


async def test_settings_say_how_much_of_a_result_stays_in_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word " * 200)
    limit = '{"results": {"maxCharsByTool": {"Read": 300}}}'

    _, whole = await handrail([READ, HELLO], tmp_path, "-p", "go")
    _, cut = await handrail([READ, HELLO], tmp_path, "-p", "go", "--settings", limit)

    assert "persisted-output" not in whole.requests[1].raw.decode()
    assert "persisted-output" in cut.requests[1].raw.decode()


async def test_variables_say_what_a_failed_command_does_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = {"a": "cp nothing here", "b": "touch made"}
    calls = Reply(tuple(ToolUse(name, "Bash", {"command": line}) for name, line in lines.items()))

    async def runs() -> bool:
        await handrail([calls, HELLO], tmp_path, "-p", "go", "--allowedTools", "Bash")
        return (tmp_path / "made").exists()

    assert not await runs()
    monkeypatch.setenv("HANDRAIL_SIBLING_ERRORS", "isolate")
    assert await runs()


async def test_a_variable_that_cannot_be_used_is_said_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_MAX_PARALLEL", "many")

    ran, server = await handrail([], tmp_path, "-p", "hi")

    assert (ran.code, server.requests) == (1, [])
    assert "the variable HANDRAIL_MAX_PARALLEL is 'many'. Give a whole number, 1 or more." in ran.errors
