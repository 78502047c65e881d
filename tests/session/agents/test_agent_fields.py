"""Every field of an agent definition has its effect, wherever it is written, and none of an untrusted project's."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Agent
from handrail.agents.definitions import AgentDefinition, parse_file
from handrail.config.flags import SettingsFlags
from handrail.config.places import places_for
from handrail.conversation.blocks import Text
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.testing.model import say, use
from handrail.tools.delegation import AgentNews
from handrail.tools.events import CallProgress
from tests.forked import reference_server
from tests.session.agents_model import AgentsModel

pytestmark = pytest.mark.anyio

HOOKS = """hooks:
  PreToolUse:
    - matcher: Write
      hooks:
        - type: command
          command: echo "$PWD" >> {log}; echo no such notes >&2; exit 2
  Stop:
    - hooks:
        - type: command
          command: echo stopped >> {log}"""


@pytest.fixture(name="open_it")
def fixture_open_it(tmp_path: Path) -> Callable[..., Agent[Any]]:
    for name in ("work", "home"):
        (tmp_path / name).mkdir()

    def open_it(
        model: AgentsModel, *, trust: bool = False, warnings: list[str] | None = None, **more: Any
    ) -> Agent[Any]:
        env = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
        env["HANDRAIL_MCP_WAIT_MS"] = "60000"  # on a busy machine a server may need long to start
        mode = more.pop("mode", "default")
        tools = ToolOptions(agents=more.pop("agents", {}), mcp_servers=more.pop("servers", {}))
        spec = SessionSpec(
            tmp_path / "work", flags=SettingsFlags(managed_policy=False, mode=mode, trust=trust), tools=tools, **more
        )
        on_warning = (warnings if warnings is not None else []).append
        return Agent.from_spec(spec, env, SessionHost(model=model, on_warning=on_warning))

    return open_it


def define(folder: Path, name: str, head: str) -> None:
    file = folder / ".claude/agents" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: d\n{head}\n---\nYou are {name}.")


def task(prompt: str, kind: str, **more: Any) -> Any:
    return use(f"t-{prompt}", "Agent", description="d", prompt=prompt, subagent_type=kind, **more)


async def ask(agent: Agent[Any], prompt: str = "go") -> Any:
    with anyio.fail_after(30):
        async with agent:
            return await agent.ask(prompt)


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("ls -a", True),
        ("ls -a | ls", True),
        ("ls -a; touch made.txt", False),
        ("touch made.txt", False),
        ("cat made.txt", False),
        ("ls > made.txt", False),
        ("ls $(touch made.txt)", False),
        ("ls & touch made.txt", False),
    ],
)
async def test_a_tool_in_part_is_a_limit_in_every_mode_and_for_agents_below(
    tmp_path: Path, open_it: Callable[..., Agent[Any]], command: str, runs: bool
) -> None:
    define(tmp_path / "home", "lister", "tools: Bash(ls:*), Agent")
    inner: Any = [[use("b", "Bash", command=command)], [say("Done.")]]
    model = AgentsModel({
        "go": [[task("list", "lister")], [say("Done.")]],
        "list": [[use("b", "Bash", command=command)], [task("below", "general-purpose")], [say("Done.")]],
        "below": inner,
    })  # fmt: skip

    await ask(open_it(model, mode="acceptEdits"))

    for who in ("list", "below"):
        said = model.texts(who, 1)
        assert ("gives it Bash only as Bash(ls:*)" not in said) is runs
    assert not (tmp_path / "work/made.txt").exists()


async def test_an_agent_below_never_works_in_a_wider_mode_than_those_above_it(
    tmp_path: Path, open_it: Callable[..., Agent[Any]]
) -> None:
    define(tmp_path / "home", "planner", "permissionMode: plan")
    define(tmp_path / "home", "writer", "permissionMode: acceptEdits")
    model = AgentsModel({
        "go": [[task("plan", "planner")], [say("Done.")]],
        "plan": [[task("write", "writer")], [say("Done.")]],
        "write": [[use("w", "Write", file_path="made.txt", content="x")], [say("Done.")]],
    })  # fmt: skip

    await ask(open_it(model, mode="acceptEdits"))

    assert not (tmp_path / "work/made.txt").exists()


async def test_an_agent_begins_with_its_skills_and_its_color_goes_with_its_news(
    tmp_path: Path, open_it: Callable[..., Agent[Any]]
) -> None:
    skill = tmp_path / "home/.claude/skills/ship/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: d\n---\nShip from !`pwd`.")
    define(tmp_path / "home", "shipper", "skills: ship, sail\ncolor: green")
    model = AgentsModel({"go": [[task("ship", "shipper")], [say("Done.")]], "ship": [[say("Shipped.")]]})

    agent = open_it(model)
    with anyio.fail_after(30):
        async with agent:
            colors = {
                event.progress.color
                async for event in agent.run("go")
                if isinstance(event, CallProgress) and isinstance(event.progress, AgentNews)
            }

    assert f"Ship from {tmp_path / 'work'}" in model.texts("ship")
    assert "[The skill 'sail' was not loaded: there is none of this name.]" in model.texts("go")
    assert colors == {"green"}


async def test_hooks_of_an_agent_hold_for_it_and_those_below_it_and_for_no_other(
    tmp_path: Path, open_it: Callable[..., Agent[Any]]
) -> None:
    log = tmp_path / "log"
    define(tmp_path / "home", "guarded", HOOKS.format(log=log))
    write = use("w", "Write", file_path="made.txt", content="x")
    model = AgentsModel({
        "go": [[task("in", "guarded")], [write], [say("Done.")]],
        "in": [[write], [task("below", "general-purpose")], [say("In.")]],
        "below": [[write], [say("Below.")]],
    })  # fmt: skip

    await ask(open_it(model, mode="acceptEdits"))

    assert log.read_text().splitlines() == [str(tmp_path / "work"), str(tmp_path / "work"), "stopped", "stopped"]
    assert "no such notes" in model.texts("below")
    assert (tmp_path / "work/made.txt").read_text() == "x"


async def test_a_server_of_an_agent_lives_as_long_as_its_work(
    tmp_path: Path, open_it: Callable[..., Agent[Any]]
) -> None:
    config = json.dumps({"ref": reference_server()})
    define(tmp_path / "home", "caller", f"tools: Read\nmcpServers: {config}")
    model = AgentsModel({
        "go": [[task("call", "caller")], [use("m", "mcp__ref__fail")], [say("Done.")]],
        "call": [[say("Called.")]],
    })  # fmt: skip

    await ask(open_it(model))

    assert {tool.name for tool in model.requests("call")[0].tools} >= {"Read", "mcp__ref__fail"}
    assert "There is no tool 'mcp__ref__fail'" in model.texts("go")


async def test_a_server_that_an_agent_must_not_have_gives_it_and_those_below_it_no_resources(
    tmp_path: Path, open_it: Callable[..., Agent[Any]]
) -> None:
    define(tmp_path / "home", "limited", "disallowedTools: mcp__ref")
    reads = [use("l", "ListMcpResourcesTool"), use("r", "ReadMcpResourceTool", server="ref", uri="notes://today")]
    model = AgentsModel({
        "go": [reads, [task("read", "limited")], [say("Done.")]],
        "read": [reads, [task("below", "general-purpose")], [say("Read.")]],
        "below": [reads, [say("Read.")]],
    })  # fmt: skip

    await ask(open_it(model, servers={"ref": reference_server(alwaysLoad=True)}))

    assert "notes://today" in model.texts("go")
    assert "sunny" in model.texts("go")
    for prompt in ("read", "below"):
        assert "There is no connected MCP server 'ref'. Known: none." in model.texts(prompt)
        assert "sunny" not in model.texts(prompt)
        assert "notes://" not in model.texts(prompt)


async def test_an_agent_reads_resources_of_its_own_servers_and_of_the_session(
    tmp_path: Path, open_it: Callable[..., Agent[Any]]
) -> None:
    entry = reference_server(alwaysLoad=True)
    define(tmp_path / "home", "caller", f"mcpServers: {json.dumps({'own': entry})}")
    reads = [use(name, "ReadMcpResourceTool", server=name, uri="notes://today") for name in ("ref", "own")]
    model = AgentsModel({"go": [[task("read", "caller")], reads, [say("Done.")]], "read": [reads, [say("Read.")]]})

    await ask(open_it(model, servers={"ref": entry}))

    assert model.texts("read").count("sunny") == 2
    assert model.texts("go").count("sunny") == 1


@pytest.mark.parametrize("memory", ["user", "project", "local"])
async def test_an_agent_keeps_notes_that_it_may_write_without_a_question_and_nothing_else(
    tmp_path: Path, open_it: Callable[..., Agent[Any]], memory: str
) -> None:
    folder = {
        "user": tmp_path / "home/.handrail/agent-memory/keeper",
        "project": tmp_path / "work/.handrail/agent-memory/keeper",
        "local": tmp_path / "work/.handrail/agent-memory-local/keeper",
    }[memory]
    define(tmp_path / "home", "keeper", f"tools: Grep\nmemory: {memory}")
    note, other = str(folder / "MEMORY.md"), str(tmp_path / "work/other.txt")
    model = AgentsModel({
        "go": [[task("keep", "keeper")], [task("again", "keeper")], [say("Done.")]],
        "keep": [
            [
                use("a", "Write", file_path=note, content="The build is slow."),
                use("b", "Write", file_path=other, content="x"),
            ],
            [say("Kept.")],
        ],
        "again": [[say("Known.")]],
    })  # fmt: skip

    await ask(open_it(model))

    assert Path(note).read_text() == "The build is slow."
    assert not Path(other).exists()
    assert "gives it Write only as" in model.texts("keep")
    assert "The build is slow." in "".join(model.requests("again")[0].system)
    ignored = (folder.parent / ".gitignore").exists()
    assert ignored is (memory != "user")


async def test_nothing_of_a_project_s_agent_runs_connects_or_is_kept_before_it_is_trusted(
    tmp_path: Path, open_it: Callable[..., Agent[Any]]
) -> None:
    log = tmp_path / "log"
    config = json.dumps({"evil": {"command": "/bin/sh", "args": ["-c", f"echo started >> {log}"]}})
    define(
        tmp_path / "work",
        "evil",
        f"{HOOKS.format(log=log)}\nmcpServers: {config}\nmemory: project\npermissionMode: bypassPermissions",
    )
    answers: Any = {
        "go": [[task("in", "evil")], [say("Done.")]],
        "in": [[use("w", "Write", file_path="made.txt", content="x")], [say("In.")]],
    }
    warnings: list[str] = []

    await ask(open_it(AgentsModel(answers), warnings=warnings))

    assert not log.exists()
    assert not (tmp_path / "work/.handrail").exists()
    assert not (tmp_path / "work/made.txt").exists()
    assert any("without effect before this folder is trusted: hooks, mcpServers, memory" in each for each in warnings)

    await ask(open_it(AgentsModel(answers), trust=True))

    assert sorted(log.read_text().splitlines()) == sorted([str(tmp_path / "work"), "started", "stopped"])
    assert (tmp_path / "work/.handrail/agent-memory/evil").is_dir()
    assert not (tmp_path / "work/made.txt").exists()


async def test_an_agent_that_leads_has_its_hooks_skills_notes_and_first_words(
    tmp_path: Path, open_it: Callable[..., Agent[Any]]
) -> None:
    log = tmp_path / "log"
    skill = tmp_path / "home/.claude/skills/ship/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: d\n---\nShip with care.")
    head = f"{HOOKS.format(log=log)}\nmemory: local\nskills: ship\ninitialPrompt: Look around first.\ntools: Bash(ls:*)"
    define(tmp_path / "home", "lead", head)
    model = AgentsModel({"Look around first.": [[use("b", "Bash", command="id")], [say("Done.")]]})

    await ask(open_it(model, agent="lead", mode="acceptEdits"), "go")

    said = model.texts("Look around first.")
    assert "Ship with care." in said
    assert "gives it Bash only as Bash(ls:*)" in said
    assert "agent-memory-local/lead" in "".join(model.requests("Look around first.")[0].system)
    assert log.read_text() == "stopped\n"


async def test_a_definition_of_the_policy_goes_before_all_others(
    tmp_path: Path, open_it: Callable[..., Agent[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy"
    (policy / "agents").mkdir(parents=True)
    (policy / "agents/x.md").write_text("---\nname: Explore\ndescription: ours\n---\nOurs.")
    monkeypatch.setattr("handrail.config.places.POLICY_FOLDERS", {sys.platform: (str(policy),)})
    assert places_for(tmp_path, {"HOME": str(tmp_path)}, tmp_path / "state").policy == (policy,)
    given = {"Explore": {"description": "theirs", "prompt": "Theirs."}}
    agent = open_it(AgentsModel({}), agents=given)
    spec = agent.session.spec
    await agent.aclose()
    env = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    flags = SettingsFlags(managed_policy=True)
    again = Agent.from_spec(replace(spec, flags=flags), env, SessionHost(model=AgentsModel({})))
    async with again:
        assert again.session.agents.definitions()["Explore"].prompt == "Ours."


@given(st.text(max_size=60), st.sampled_from(["hooks", "mcpServers", "memory", "maxTurns", "tools", "skills"]))
def test_a_field_of_any_text_makes_a_definition_or_a_named_problem(text: str, field: str) -> None:
    line = " ".join(text.split())
    found = parse_file(f"---\nname: x\ndescription: d\n{field}: {line}\n---\nbody", "x.md")
    assert isinstance(found, AgentDefinition) or found.startswith("x.md: ")


@pytest.mark.parametrize(
    ("kind", "said", "variable", "leads", "asked"),
    [
        ("named", "opus", "haiku", "claude-sonnet-4-6", "claude-opus-4-6"),
        ("named", "", "haiku", "claude-sonnet-4-6", "claude-haiku-4-5"),
        ("same", "", "haiku", "claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("plain", "", "opus", "claude-sonnet-4-6", "claude-opus-4-6"),
        ("plain", "", "", "claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("Explore", "", "", "claude-sonnet-4-6", "claude-haiku-4-5"),
        ("Explore", "", "opus", "claude-sonnet-4-6", "claude-opus-4-6"),
        ("Explore", "", "", "gpt-5", "gpt-5"),
        ("plain", "opus", "", "gpt-5", "gpt-5"),
        ("plain", "", "haiku", "gpt-5", "gpt-5"),
    ],
)
async def test_the_model_of_an_agent_is_that_of_the_call_its_file_the_variable_or_its_caller(
    tmp_path: Path, kind: str, said: str, variable: str, leads: str, asked: str
) -> None:
    for name, head in (("named", "model: haiku"), ("same", "model: inherit"), ("plain", "")):
        define(tmp_path / "home", name, head)
    (tmp_path / "work").mkdir()
    model = AgentsModel({"go": [[task("one", kind, model=said)], [say("Ok.")]], "one": [[say("Done.")]]})
    model.model = leads  # type: ignore[attr-defined]
    env = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    env["CLAUDE_CODE_SUBAGENT_MODEL"] = variable
    spec = SessionSpec(tmp_path / "work", flags=SettingsFlags(managed_policy=False))
    await ask(Agent.from_spec(spec, env, SessionHost(model=model)))
    assert [request.model for request in model.requests("one")] == [asked]


async def test_files_of_agents_that_change_during_a_session_count_from_the_next_turn_and_are_told(
    tmp_path: Path, open_it: Callable[..., Agent[Any]]
) -> None:
    define(tmp_path / "home", "early", "")
    model = AgentsModel(
        {"go": [[say("1")], [task("inner", "late")], [say("2")], [say("3")]], "inner": [[say("Done.")]]}
    )
    warnings: list[str] = []
    agent = open_it(model, warnings=warnings)
    with anyio.fail_after(30):
        async with agent:
            await agent.ask("go")
            define(tmp_path / "home", "late", "")
            (tmp_path / "home/.claude/agents/broken.md").write_text("---\nname: broken\n---\n")
            await agent.ask("more")
            (tmp_path / "home/.claude/agents/early.md").unlink()
            await agent.ask("most")
            assert {"late"} <= set(agent.session.agents.definitions()) >= {"Explore"}
    first, *_, last = model.requests("go")
    assert (last.system, [each.name for each in last.tools]) == (first.system, [each.name for each in first.tools])
    notes = [
        block.text
        for message in last.history.messages
        for block in message.content
        if isinstance(block, Text) and block.text.startswith("Kinds of sub-agents")
    ]
    assert [("- early:" in note, "- late:" in note) for note in notes] == [(True, False), (True, True), (False, True)]
    assert sum("broken.md" in each for each in warnings) == 1
