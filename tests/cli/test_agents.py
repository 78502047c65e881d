"""`handrail agents`: list, show, new and check."""

import json
from pathlib import Path

import pytest

from handrail.cli.main import run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "project"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    for name in ("HANDRAIL_CONFIG_DIR", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return work


def test_a_new_agent_is_listed_shown_and_without_fault(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agents", "new", "finder"]) == 0
    assert run(["agents", "new", "mine", "--user"]) == 0
    assert run(["agents", "check"]) == 0
    assert capsys.readouterr().out.endswith("5 agents, 0 problems\n")

    assert run(["agents", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["origin"]) for row in rows[:2]] == [("finder", "project"), ("mine", "user")]
    assert rows[0]["fields"] == {"tools": ["Read", "Grep", "Glob"]}
    assert run(["agents", "show", "finder"]) == 0
    assert "You are handed one task." in capsys.readouterr().out
    assert run(["agents", "new", "finder"]) == 2
    assert run(["agents", "new", "../x"]) == 2
    assert run(["agents", "show", "find"]) == 2
    errors = capsys.readouterr().err
    assert "is there already" in errors
    assert "'../x' cannot be the name" in errors
    assert "Did you mean 'finder'?" in errors


def test_a_name_in_tools_that_is_no_tool_is_named_with_the_one_that_was_meant(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = folder / ".handrail/agents"
    agents.mkdir(parents=True)
    tools = "Raed, Grep, Bash(ls *), mcp__shop, Frobnicate"
    (agents / "a.md").write_text(f"---\nname: a\ndescription: d\ntools: {tools}\n---\nLook.\n")

    assert run(["agents", "check", "--json"]) == 1

    problems = json.loads(capsys.readouterr().out)["problems"]
    assert [problem.partition("a.md: ")[2] for problem in problems] == [
        "the agent 'a' lists 'Raed' in tools, which is not a tool. Did you mean 'Read'?",
        "the agent 'a' lists 'Frobnicate' in tools, which is not a tool.",
    ]


def test_a_broken_definition_is_named_and_so_is_what_one_wants_and_does_not_get(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = folder / ".claude/agents"
    agents.mkdir(parents=True)
    (agents / "a.md").write_text("---\nname: a\n---\n")
    (agents / "b.md").write_text("---\nname: b\ndescription: d\nmaxTurns: many\n---\n")
    (agents / "c.md").write_text("---\nname: c\ndescription: d\nhooks:\n\tStop: x\n---\n")
    head = "description: d\nskills: gone\nmcpServers: db\ncolor: beige\ntools: Bash(ls\nmemory: project"
    (agents / "d.md").write_text(f"---\nname: d\n{head}\n---\n")

    assert run(["agents", "check", "--json"]) == 1

    problems = "\n".join(json.loads(capsys.readouterr().out)["problems"])
    for said in (
        "a.md: the agent 'a' has no description. Say in it when to hand a task to the agent.",
        "b.md: the agent 'b' has the maxTurns 'many'",
        "c.md: hooks:",
        ".claude/agents/d.md: without effect before this folder is trusted: memory.",
        "the agent 'd' gets nothing by 'Bash(ls': the bracket is not closed",
        "the agent 'd' has the color 'beige'",
        "the agent 'd' names the skill 'gone', which is not here",
        "the agent 'd' names the MCP server 'db', which is not configured here",
    ):
        assert said in problems
