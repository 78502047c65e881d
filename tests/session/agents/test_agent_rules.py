"""What holds for the calls of sub-agents: rules in worktrees, plan mode, whose state they change, who is named."""

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent, Deny, ToolContext, tool
from handrail.config.flags import SettingsFlags
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.testing.model import say, use
from tests.session.agents.test_subagents import delegate
from tests.session.agents_model import AgentsModel

pytestmark = pytest.mark.anyio


def open_agent(folder: Path, model: AgentsModel, *, mode: str = "acceptEdits", **more: Any) -> Agent[Any]:
    env = {"HOME": str(folder / "home"), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": "/usr/bin:/bin"}
    (folder / "work").mkdir(exist_ok=True)
    cwd, tools = more.pop("cwd", folder / "work"), more.pop("tools", ())
    flags = SettingsFlags(sources=(), managed_policy=False, mode=mode, disallowed=more.pop("deny", ()))
    spec = SessionSpec(cwd, flags=flags, tools=ToolOptions(tools))
    return Agent.from_spec(spec, env, SessionHost(model=model, **more))


def repository(folder: Path) -> Path:
    work = folder / "work"
    (work / "sub").mkdir(parents=True)
    (work / "secret.txt").write_text("needle\n")
    (work / "sub" / "keys.txt").write_text("needle\n")
    (work / "open.txt").write_text("needle\n")
    env = {
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
    }
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=work, env=env, check=True)
    return work


@pytest.mark.parametrize("inside", ["", "sub"])
async def test_what_rules_of_the_project_deny_is_denied_and_hidden_in_the_worktree_of_an_agent(
    tmp_path: Path, inside: str
) -> None:
    work = repository(tmp_path)
    top = ".." if inside else "."
    model = AgentsModel(
        {
            "go": [[delegate(1, "look", isolation="worktree")], [say("Done.")]],
            "look": [
                [
                    use("g", "Grep", pattern="needle", path=top),
                    use("l", "Glob", pattern="**/*.txt", path=top),
                    use("r", "Read", file_path=f"{top}/secret.txt"),
                    use("k", "Read", file_path=f"{top}/sub/keys.txt"),
                    use("o", "Read", file_path=f"{top}/open.txt"),
                ],
                [say("Seen.")],
            ],
        },
        contains=True,
    )
    with anyio.fail_after(60):
        deny = (
            ("Read(./secret.txt)", "Read(./sub/keys.txt)")
            if not inside
            else ("Read(./keys.txt)", "Read(../secret.txt)")
        )
        async with open_agent(tmp_path, model, cwd=work / inside, deny=deny) as agent:
            await agent.ask("go")
    results = [block for message in model.requests("look")[-1].history.messages for block in message.content]
    texts = {block.tool_use_id: block.text for block in results if hasattr(block, "tool_use_id")}
    assert "open.txt" in texts["g"]
    assert "open.txt" in texts["l"]
    assert "1\tneedle" in texts["o"]
    for name in ("secret.txt", "keys.txt"):
        assert name not in texts["g"]
        assert name not in texts["l"]
    for call in ("r", "k"):
        assert "was refused: the rule Read(" in texts[call]
        assert "needle" not in texts[call]


@pytest.mark.parametrize("can_ask", [True, False])
async def test_in_plan_mode_an_agent_gets_no_worktree_unasked(tmp_path: Path, can_ask: bool) -> None:
    work = repository(tmp_path)
    asked: list[str] = []

    async def person(name: str, _given: Mapping[str, Any], question: Any) -> Any:
        asked.append(f"{name}: {question.reason}")
        return Deny("not now")

    model = AgentsModel(
        {"go": [[delegate(1, "look", isolation="worktree"), delegate(2, "see")], [say("Ok.")]], "see": [[say("Seen.")]]}
    )
    more = {"can_use_tool": person} if can_ask else {}
    with anyio.fail_after(60):
        async with open_agent(tmp_path, model, mode="plan", **more) as agent:
            await agent.ask("go")
    assert not (work / ".handrail").exists()
    assert "Seen." in model.texts("go")  # one that needs none works
    assert [each for each in asked if "git worktree" in each] == asked
    assert len(asked) == can_ask


@pytest.mark.proves("M3")
async def test_a_sub_agent_changes_the_state_of_its_caller_only_through_the_updater_for_that(tmp_path: Path) -> None:
    seen: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    @tool(concurrency_safe=True, read_only=True)
    async def count(name: str, ctx: ToolContext) -> str:
        """Counts."""
        seen.append((name, dict(ctx.state.get()), dict(ctx.session_state.get())))
        ctx.state.update(lambda state: {**state, "own": name})
        ctx.session_state.update(lambda state: {**state, "shared": [*state.get("shared", []), name]})
        return "ok"

    model = AgentsModel({
        "go": [
            [use("1", "count", name="before")],
            [delegate(1, "inner")],
            [use("2", "count", name="after")],
            [say("Ok.")],
        ],
        "inner": [[use("3", "count", name="inside")], [use("4", "count", name="again")], [say("Done.")]],
    })  # fmt: skip
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model, tools=(count,)) as agent:
            await agent.ask("go")
    assert [each[0] for each in seen] == ["before", "inside", "again", "after"]
    before, inside, again, after = seen
    assert before[1] == before[2] == {}
    assert inside[1] == {"own": "before", "shared": ["before"]}  # it begins with a copy
    assert again[1]["own"] == "inside"
    assert after[1]["own"] == "before"
    assert after[2]["shared"] == ["before", "inside", "again"]


@pytest.mark.proves("G31")
async def test_questions_of_agents_in_the_background_reach_the_person_through_the_session_with_their_path(
    tmp_path: Path,
) -> None:
    asked: list[Any] = []

    async def person(_name: str, _given: Mapping[str, Any], question: Any) -> Any:
        asked.append(question.agent)
        return Deny("no")

    write: Any = [[use("w", "Write", file_path="made", content="x")], [say("End.")]]
    model = AgentsModel({
        "go": [[delegate(1, "outer", run_in_background=True)], [say("Ok.")], [say("Told.")]],
        "outer": [[delegate(2, "inner", subagent_type="general-purpose")], [say("Outer.")]],
        "inner": write,
    })  # fmt: skip
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model, mode="default", can_use_tool=person) as agent:
            await agent.ask("go")
            assert await agent.session.background.next_notification() is not None
            outer, inner = agent.session.agents.known.all()
    path = (f"general-purpose {outer.id}", f"general-purpose {inner.id}")
    assert [(each.id, each.path) for each in asked] == [(inner.id, path)]
    assert f"no (agent {' > '.join(path)})" in model.texts("inner")
    [log] = (tmp_path / "state" / "audit").glob("*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    [line] = [each for each in lines if each["tool"] == "Write"]
    assert (line["agent"], tuple(line["agent_path"])) == (inner.id, path)
    assert line["reason"].endswith(f"(agent {' > '.join(path)})")


async def test_without_anyone_to_ask_an_agent_in_the_background_is_refused_and_goes_on(tmp_path: Path) -> None:
    write: Any = [[use("w", "Write", file_path="made", content="x")], [say("End.")]]
    model = AgentsModel({"go": [[delegate(1, "inner", run_in_background=True)], [say("Ok.")]], "inner": write})
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model, mode="default") as agent:
            await agent.ask("go")
            message = await agent.session.background.next_notification()
            assert message is not None
            await asyncio.sleep(0)
    assert "there is no one to ask" in model.texts("inner")
    assert not (tmp_path / "work" / "made").exists()


SKILL = """---
description: d
allowed-tools: Bash(mkdir *)
hooks:
  PostToolUse:
  - matcher: Bash
    hooks:
    - type: command
      command: touch hooked
---
Make folders.
"""


@pytest.mark.proves("N14")
async def test_what_a_skill_allows_and_hooks_counts_for_the_agent_that_loads_it_and_those_below_until_it_ends(
    tmp_path: Path,
) -> None:
    skill = tmp_path / "home/.claude/skills/wide/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL)
    load = use("s", "Skill", skill="wide")
    model = AgentsModel({
        "go": [
            [delegate(1, "loads", run_in_background=False), delegate(2, "other", run_in_background=False)],
            [use("m", "Bash", command="mkdir lead")],
            [delegate(3, "again", run_in_background=False)],
            [say("Ok.")],
        ],
        "loads": [
            [load],
            [use("1", "Bash", command="mkdir own")],
            [delegate(4, "below", run_in_background=False)],
            [say("Made.")],
        ],
        "below": [[use("2", "Bash", command="mkdir below")], [say("Made.")]],
        "other": [[use("3", "Bash", command="mkdir other")], [say("Tried.")]],
        "again": [[use("4", "Bash", command="mkdir again")], [say("Tried.")]],
    })  # fmt: skip
    env = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    (tmp_path / "work").mkdir()
    flags = SettingsFlags(sources=("user",), managed_policy=False, allowed=("Skill",))
    with anyio.fail_after(60):
        spec, host = SessionSpec(tmp_path / "work", flags=flags), SessionHost(model=model)
        async with Agent.from_spec(spec, env, host) as agent:
            await agent.ask("go")
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["below", "hooked", "own"]


async def test_an_agent_that_shares_the_folder_may_edit_what_its_caller_has_read_and_its_own_reads_stay_its_own(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "read.txt").write_text("one\n")
    (work / "new.txt").write_text("one\n")
    change = {"old_string": "one", "new_string": "two"}
    model = AgentsModel({
        "go": [
            [use("r", "Read", file_path="read.txt")],
            [delegate(1, "inner", run_in_background=False)],
            [use("n", "Edit", file_path="new.txt", **change)],
            [say("Ok.")],
        ],
        "inner": [
            [use("e", "Edit", file_path="read.txt", **change), use("s", "Read", file_path="new.txt")],
            [say("Done.")],
        ],
    })  # fmt: skip
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model) as agent:
            await agent.ask("go")
    assert [(work / name).read_text() for name in ("read.txt", "new.txt")] == ["two\n", "one\n"]
