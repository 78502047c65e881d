"""The first day of people who come from other agents, with the files they already have."""

import asyncio
import json
from pathlib import Path

import anyio
import pytest

from handrail.cli import doctor
from handrail.cli.findings import State
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolUse
from handrail.headless.engine import EngineOptions
from handrail.mcp.messages import Message
from handrail.providers.choose import ModelOptions
from handrail.session.spec import SessionHost
from handrail.testing.model_server import ModelServer, Received, Reply
from tests.headless.in_process import peer
from tests.session.folder_agent import open_agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", "HANDRAIL_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def options(server: ModelServer) -> ModelOptions:
    return ModelOptions("anthropic", "claude-sonnet-4-6", server.url, "test-key")


@pytest.mark.proves("R5")
async def test_a_server_that_hangs_delays_no_first_word_and_its_tools_are_appended_when_it_answers(
    work: Path, env: dict[str, str]
) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()
    warnings: list[str] = []

    async def carry(_name: str, message: Message) -> Message:
        await gate.wait()
        tools = [{"name": "a", "description": "Late.", "inputSchema": {"type": "object"}}]
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": {"capabilities": {"tools": {}}, "tools": tools}}

    env |= {"HANDRAIL_MCP_WAIT_MS": "0", "ENABLE_TOOL_SEARCH": "false"}
    first = Reply((ToolUse("1", "Glob", {"pattern": "*"}),), gates={0: asked})
    with anyio.fail_after(20):
        async with ModelServer([first, Reply((Text("Done."),))], strict=True) as server:
            host = SessionHost(mcp_transport=carry, on_warning=warnings.append)
            agent = open_agent(work, env, options(server), servers={"slow": {"type": "sdk"}}, host=host)
            try:
                run = asyncio.ensure_future(agent.ask("Go."))
                while not server.requests:
                    await anyio.lowlevel.checkpoint()
                gate.set()
                while "mcp__slow__a" not in agent.tools.names():
                    await anyio.lowlevel.checkpoint()
                asked.set()
                await run
            finally:
                await agent.aclose()
            before, after = ([tool["name"] for tool in each.body["tools"]] for each in server.requests)

    assert after == [*before, "mcp__slow__a"]
    assert warnings == []  # a short wait is nothing to tell people of


# Commands that people bring along


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


MAKE = """---
description: Makes a folder
argument-hint: [name]
allowed-tools: Bash(mkdir *)
model: haiku
---
Look at @notes.txt and at $0: !`mkdir -v $0`
"""


def bash(command: str) -> Reply:
    return Reply((ToolUse("t1", "Bash", {"command": command}),))


def say(text: str) -> Reply:
    return Reply((Text(text),))


def results(request: Received) -> str:
    """The results of calls in the last message of a request."""
    return json.dumps([block for block in request.body["messages"][-1]["content"] if block["type"] == "tool_result"])


async def test_a_command_of_another_agent_works_with_its_model_its_output_its_file_and_its_permissions(
    tmp_path: Path, work: Path
) -> None:
    write(work / ".claude/commands/front/make.md", MAKE)
    write(work / "notes.txt", "Folders have short names.")
    replies = [bash("mkdir second"), say("Made."), bash("mkdir third"), say("Refused.")]
    spec = {"flags": SettingsFlags(trust=True), "model": ModelOptions(model="sonnet")}
    async with peer(tmp_path, replies, spec=spec, options=EngineOptions()) as p:
        hello = await p.ask("initialize", hooks=None)
        made = await p.turn("/front:make first")
        await p.turn("And a third.")

    [listed] = [each for each in hello["response"]["commands"] if each["name"] == "front:make"]
    assert listed == {"name": "front:make", "description": "Makes a folder", "argumentHint": "name"}
    first, _, third, fourth = p.server.requests
    asked = "\n".join(block["text"] for block in first.body["messages"][-1]["content"])
    assert "Look at @notes.txt and at first: mkdir: created directory 'first'" in asked
    assert "Folders have short names." in asked
    assert [each.body["model"] for each in p.server.requests] == [
        *["claude-haiku-4-5"] * 2,
        *["claude-sonnet-4-6"] * 2,
    ]
    assert (made[-1]["result"], sorted(each.name for each in work.iterdir() if each.name[0] != ".")) == (
        "Made.",
        ["first", "notes.txt", "second"],
    )
    assert "there is no one to ask" in results(fourth)
    assert "Made." in json.dumps(third.body["messages"])


@pytest.mark.proves("R9")
async def test_in_a_folder_that_is_not_trusted_a_command_runs_nothing_and_allows_nothing(
    tmp_path: Path, work: Path
) -> None:
    write(work / ".claude/commands/make.md", MAKE)
    write(work / ".claude/commands/allow.md", "---\nallowed-tools: Bash\nmodel: opus\n---\nGo on.")
    async with peer(tmp_path, [bash("mkdir made"), say("Refused.")], options=EngineOptions()) as p:
        refused = await p.turn("/make first")
        asked_before = len(p.server.requests)
        await p.turn("/allow")

    assert "runs `mkdir -v first`, and nothing was run: this folder is not trusted." in refused[-1]["result"]
    assert "handrail trust --show" in refused[-1]["result"]
    assert (refused[-1]["num_turns"], refused[-1]["is_error"], asked_before) == (0, False, 0)
    assert "there is no one to ask" in results(p.server.requests[1])
    assert {each.body["model"] for each in p.server.requests} == {"claude-sonnet-4-6"}
    assert [each.name for each in work.iterdir()] == [".claude"]


async def test_a_command_line_in_a_command_passes_the_gate_of_bash_and_its_refusal_names_the_way_out(
    tmp_path: Path, work: Path
) -> None:
    write(tmp_path / "home/.claude/commands/make.md", "Now: !`mkdir made`")
    async with peer(tmp_path, options=EngineOptions()) as p:
        refused = (await p.turn("/make"))[-1]

    assert refused["result"].startswith("Shell command permission check failed for /make: `mkdir made` was not run: ")
    assert "--allowedTools 'Bash(mkdir made)'" in refused["result"]
    assert (refused["subtype"], refused["num_turns"], refused["is_error"]) == ("success", 0, False)
    assert [each["tool_input"] for each in refused["permission_denials"]] == [{"command": "mkdir made"}]
    assert (p.server.requests, list(work.iterdir())) == ([], [])


async def test_files_that_a_prompt_names_come_along_unless_the_rules_for_reading_object(
    tmp_path: Path, work: Path
) -> None:
    write(work / "plain.txt", "plain words")
    write(work / "folder/inner.txt", "")
    write(work / "kept/back.txt", "denied words")
    write(work / ".env", "TOKEN=secret-words")
    write(tmp_path / "outside.txt", "outside words")
    write(work / ".handrail/settings.json", '{"permissions": {"deny": ["Read(./kept/**)"]}}')
    prompt = f"Compare @plain.txt, @folder, @kept/back.txt, @.env and @{tmp_path}/outside.txt, says @alice."
    async with peer(tmp_path, [say("Done.")], options=EngineOptions()) as p:
        await p.turn(prompt)

    asked = "\n".join(block["text"] for block in p.server.requests[0].body["messages"][-1]["content"])
    assert prompt in asked
    assert "plain words" in asked
    assert "inner.txt" in asked
    assert "@kept/back.txt. It was not read: the rule Read(./kept/**) matches" in asked
    assert asked.count("It was not read:") == 3
    assert not [words for words in ("denied words", "secret-words", "outside words") if words in asked]


async def test_what_is_there_and_has_no_effect_is_named_at_the_start_and_in_doctor(
    tmp_path: Path, work: Path, env: dict[str, str]
) -> None:
    write(work / ".claude/skills/pdf/SKILL.md", "---\ncolour: red\ndescription: d\n---\n")
    write(work / ".claude/settings.json", '{"outputStyle": "Concise", "spinner": {"verbs": []}}')
    write(work / ".claude/agents/helper.md", "---\nname: helper\ndescription: d\ncolour: red\n---\nHelp.")
    write(tmp_path / "home/.claude/commands/fork.md", "---\ncontext: spoon\n---\nGo.")
    write(tmp_path / "home/.handrail/mcp.json", "{}")
    write(tmp_path / "home/.handrail/keybindings.json", "{}")
    expected = [
        ".claude/settings.json: keys without effect: spinner",
        "~/.claude/commands/fork.md: context is 'spoon'. Use fork, or leave it out.",
        ".claude/skills/pdf/SKILL.md: no effect: colour",
        ".claude/agents/helper.md: no effect: colour (did you mean 'color'?)",
    ]

    warnings: list[str] = []
    host = SessionHost(on_warning=warnings.append)
    agent = open_agent(work, env, ModelOptions("anthropic", "m", "http://127.0.0.1:9", "k"), host=host)
    agent.session.agents.definitions()
    await agent.aclose()
    assert [text for text in warnings if "is not trusted" not in text] == expected

    found = doctor.findings(doctor.Here(env, work, tmp_path / "home"))
    assert [each.text for each in found if each.text in expected] == expected
    assert not [each for each in found if each.state is State.PROBLEM and each.text in expected]


async def test_the_model_of_an_agent_file_is_asked_by_its_short_name(tmp_path: Path, work: Path) -> None:
    write(work / ".claude/agents/team/finder.md", "---\nname: finder\ndescription: d\nmodel: haiku\n---\nFind.")
    task = {"description": "d", "prompt": "Go.", "subagent_type": "finder", "run_in_background": False}
    call = ToolUse("a", "Agent", task)
    async with peer(tmp_path, [Reply((call,)), say("Found."), say("Done.")], options=EngineOptions()) as p:
        await p.turn("Find it.")

    assert [each.body["model"] for each in p.server.requests] == [
        "claude-sonnet-4-6",
        "claude-haiku-4-5",
        "claude-sonnet-4-6",
    ]
