"""`--agent` and `--debug-file` of `handrail -p`, as a process."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_run import HELLO, READ, handrail, started, variables
from tests.forked import reference_server

from handrail.conversation.blocks import ToolUse
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

WRITE = Reply((ToolUse("t1", "Write", {"file_path": "new.txt", "content": "x"}),))
EDITS = ("--permission-mode", "acceptEdits")


def written(folder: Path, name: str, head: str, body: str = "You review code.") -> None:
    agents = folder / ".handrail" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    (agents / f"{name}.md").write_text(f"---\nname: {name}\ndescription: d\n{head}\n---\n{body}\n")


def offered(body: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in body["tools"]}


def system(body: dict[str, Any]) -> str:
    return json.dumps(body["system"])


async def test_an_agent_leads_with_its_prompt_tools_and_model(tmp_path: Path) -> None:
    written(tmp_path, "reviewer", "tools: Read, Grep, Bash(git diff *), Agent\ndisallowedTools: Grep\nmodel: special-1")

    ran, server = await handrail(
        [HELLO], tmp_path, "-p", "hi", "--agent", "reviewer", "--append-system-prompt", "Briefly."
    )

    assert ran.errors == ""
    body = server.requests[0].body
    assert (ran.code, ran.out, ran.errors) == (0, "Hello there.\n", "")
    assert (body["model"], offered(body)) == ("special-1", {"Read", "Bash", "Agent"})
    assert "You review code." in system(body)
    assert "Briefly." in system(body)


async def test_flags_go_before_the_model_and_the_prompt_of_an_agent_and_only_narrow_its_tools(tmp_path: Path) -> None:
    written(tmp_path, "reviewer", "tools: Read, Grep\nmodel: special-1")
    flags = ("--model", "mine", "--system-prompt", "Be a poet.", "--tools", "Read,Write")

    ran, server = await handrail([HELLO], tmp_path, "-p", "hi", "--agent", "reviewer", *flags)

    assert ran.errors == ""
    body = server.requests[0].body
    assert (body["model"], offered(body)) == ("mine", {"Read"})
    assert "Be a poet." in system(body)
    assert "You review code." not in system(body)


@pytest.mark.parametrize(
    ("model", "settings", "asked"),
    [
        ("haiku", {}, "claude-haiku-4-5"),
        ("Opus[1m]", {}, "claude-opus-4-6"),
        ("inherit", {"model": "mine"}, "mine"),
        pytest.param("haiku", {"model": "mine"}, "mine", id="another vendor has no such family"),
        ("haiku", {"model": "opus", "availableModels": ["opus"]}, "claude-opus-4-6"),
        (
            "haiku",
            {"availableModels": ["sonnet", "haiku"], "modelOverrides": {"claude-haiku-4-5": "small"}},
            "small",
        ),
    ],
)
async def test_a_short_model_name_of_an_agent_means_what_it_means_for_sub_agents(
    tmp_path: Path, model: str, settings: dict[str, Any], asked: str
) -> None:
    written(tmp_path, "reviewer", f"model: {model}")

    flags = ("--agent", "reviewer", "--settings", json.dumps(settings))
    ran, server = await handrail([HELLO], tmp_path, "-p", "hi", *flags)

    assert (ran.errors, server.requests[0].body["model"]) == ("", asked)


@pytest.mark.parametrize(("mode", "made"), [("plan", False), ("bypassPermissions", True)])
async def test_the_mode_of_an_agent_counts_only_where_it_is_stricter(tmp_path: Path, mode: str, made: bool) -> None:
    written(tmp_path, "careful", f"permissionMode: {mode}")
    bash = Reply((ToolUse("t2", "Bash", {"command": "touch other.txt; curl http://127.0.0.1:9"}),))

    await handrail([WRITE, bash, HELLO], tmp_path, "-p", "hi", "--agent", "careful", *EDITS)

    assert ((tmp_path / "new.txt").exists(), (tmp_path / "other.txt").exists()) == (made, False)


async def test_an_agent_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    written(tmp_path, "here", "")

    ran, server = await handrail([], tmp_path, "-p", "hi", "--agent", "nobody")

    assert (ran.code, ran.out, server.requests) == (1, "", [])
    assert "there is no agent 'nobody'. Known: Explore, Plan, general-purpose, here." in ran.errors


async def test_debug_output_goes_to_a_file_of_the_owner_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    file = tmp_path / "debug.log"
    file.write_text("before\n")
    file.chmod(0o644)
    told = Reply((ToolUse("hunter2-hunter2", "Read", {"file_path": "a.txt"}),))
    async with ModelServer([told, HELLO], strict=True) as server:
        env = {**variables(server, tmp_path), "MY_TOKEN": "hunter2-hunter2"}
        process = await started(tmp_path, env, "-p", "go", "--debug-file", str(file))
        out, errors = await process.communicate(b"")

    text = file.read_text()
    assert (process.returncode, out, errors) == (0, b"Hello there.\n", b"")
    assert text.startswith("before\nhandrail: request 1.1 to ")
    assert "Read started ([redacted:MY_TOKEN])" in text
    assert "hunter2" not in text
    assert file.stat().st_mode & 0o777 == 0o600


async def test_the_key_that_a_helper_printed_is_not_in_the_debug_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    told = Reply((ToolUse("helper-made-4711", "Read", {"file_path": "a.txt"}),))
    helper = json.dumps({"apiKeyHelper": "echo helper-made-4711"})

    ran, server = await handrail(
        [told, HELLO], tmp_path, "-p", "go", "--settings", helper, "--debug-file", "d.log", "--no-session-persistence"
    )

    text = (tmp_path / "d.log").read_text()
    assert (ran.code, ran.errors) == (0, "")
    assert "helper-made-4711" in str(server.requests[0].headers)
    assert "Read started ([redacted:" in text
    assert "helper-made-4711" not in text


async def test_a_program_gets_the_agent_it_brought_and_the_debug_file_too(tmp_path: Path) -> None:
    agents = {"poet": {"description": "d", "prompt": "Rhyme.", "tools": ["Read"]}}
    hello = {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize", "agents": agents}}
    prompt = {"type": "user", "message": {"role": "user", "content": "hi"}}
    flags = ("--output-format", "stream-json", "--input-format", "stream-json", "--system-prompt", "")

    ran, server = await handrail(
        [HELLO],
        tmp_path,
        *flags,
        "--agent",
        "poet",
        "--debug-file",
        "d.log",
        stdin=f"{json.dumps(hello)}\n{json.dumps(prompt)}\n",
    )

    assert (ran.code, ran.lines[-1]["result"], ran.errors) == (0, "Hello there.", "")
    assert "Rhyme." in system(server.requests[0].body)
    assert offered(server.requests[0].body) == {"Read"}
    assert "ended: completed" in (tmp_path / "d.log").read_text()


async def test_a_debug_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    ran, server = await handrail([], tmp_path, "-p", "hi", "--debug-file", "link")

    assert (ran.code, ran.out, server.requests) == (1, "", [])
    assert "--debug-file: 'link' cannot be written" in ran.errors
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("head", "servers"),
    [
        ("tools: Read", 0),
        ("tools: Read, mcp__ref__fail", 1),
        ("tools: Read\nmcpServers: ref", 10),
        ("tools: Read, mcp__*", 10),
        ("tools: Read, mcp__*\ndisallowedTools: mcp__ref__fail", 9),
    ],
)
async def test_tools_of_servers_are_there_only_for_an_agent_that_wants_them(
    tmp_path: Path, head: str, servers: int
) -> None:
    written(tmp_path, "lead", head)
    config = {"mcpServers": {"ref": reference_server()}}
    flags = ("--mcp-config", json.dumps(config), "--agent", "lead")

    ran, server = await handrail([HELLO], tmp_path, "-p", "hi", *flags)

    names = offered(server.requests[0].body)
    assert (ran.code, ran.errors) == (0, "")
    assert (len({name for name in names if name.startswith("mcp__ref__")}), "Read" in names) == (servers, True)


@pytest.mark.parametrize(("flags", "turns"), [((), 1), (("--max-turns", "5"), 1)])
async def test_the_turns_of_an_agent_count_where_they_are_fewer(
    tmp_path: Path, flags: tuple[str, ...], turns: int
) -> None:
    written(tmp_path, "lead", "maxTurns: 1")
    (tmp_path / "a.txt").write_text("x\n")

    ran, _ = await handrail([READ], tmp_path, "-p", "hi", "--agent", "lead", "--output-format", "json", *flags)

    assert (ran.lines[-1]["subtype"], ran.lines[-1]["num_turns"]) == ("error_max_turns", turns)


async def test_an_agent_that_forbids_what_is_not_understood_does_not_lead(tmp_path: Path) -> None:
    agents = {"odd": {"description": "d", "prompt": "p", "disallowedTools": ["Ba sh"]}}

    ran, server = await handrail([], tmp_path, "-p", "hi", "--agent", "odd", "--agents", json.dumps(agents))

    assert (ran.code, server.requests) == (1, [])
    assert "'odd' forbids 'Ba sh'" in ran.errors
