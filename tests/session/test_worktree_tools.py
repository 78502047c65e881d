"""EnterWorktree, ExitWorktree and --worktree: everything follows, and no work is removed without a yes."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent
from handrail.cli.main import run
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.errors import HandrailError
from handrail.session.spec import SessionHost, SessionSpec
from handrail.testing.model import ScriptedModel, say, use
from handrail.tools.permission import Allow
from tests.agents.test_worktrees import git, new_repository
from tests.forked import program, unmeasured
from tests.session.agents_model import user_text

pytestmark = [pytest.mark.anyio, pytest.mark.needs("git")]


def open_agent(
    work: Path, model: ScriptedModel, *, settings: dict[str, Any] | None = None, host: Any = None, **more: Any
) -> Agent[Any]:
    home = work.parent / "home"
    env = {
        "HOME": str(home),
        "HANDRAIL_STATE_DIR": str(work.parent / "state"),
        "PATH": more.pop("path", os.environ["PATH"]),
        "IS_SANDBOX": "1",
    }
    flags = SettingsFlags(
        managed_policy=False,
        mode=more.pop("mode", "acceptEdits"),
        settings=json.dumps(settings or {}),
        **more.pop("flags", {}),
    )
    return Agent.from_spec(SessionSpec(work, flags=flags, **more), env, SessionHost(model=model, **(host or {})))


async def ask(agent: Agent[Any], prompt: str = "go") -> Any:
    with anyio.fail_after(60):
        async with agent:
            return await agent.ask(prompt)


def tree(work: Path, name: str = "fix") -> Path:
    return work / ".handrail/worktrees" / name


@pytest.mark.proves("N24")
async def test_folders_rules_memory_and_what_was_read_follow_into_a_worktree_and_back(tmp_path: Path) -> None:
    work = new_repository(tmp_path / "work")
    (work / "CLAUDE.md").write_text("Be brief.")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "second")
    (work / "CLAUDE.md").write_text("Be brief, and uncommitted.")
    before = git(work, "rev-parse", "HEAD"), git(work, "status", "--porcelain")
    model = ScriptedModel([
        [use("r", "Read", file_path="a.txt")],
        [use("w", "EnterWorktree", name="fix")],
        [use("e", "Edit", file_path="a.txt", old_string="one", new_string="changed")],
        [use("o", "Edit", file_path=str(work / "a.txt"), old_string="one", new_string="outside")],
        [use("d", "Read", file_path="sub/b.txt"), use("p", "Bash", command="pwd")],
        [use("x", "ExitWorktree", action="remove")],
        [use("k", "ExitWorktree", action="keep")],
        [use("q", "Bash", command="pwd")],
        [say("Done.")],
    ])  # fmt: skip

    await ask(open_agent(work, model, settings={"permissions": {"deny": ["Read(./sub/**)"]}}))

    texts = [user_text(request) for request in model.requests]
    assert "You work in the worktree" in texts[2]
    assert "git apply" in texts[2]  # what is not committed stayed behind
    assert (tree(work) / "a.txt").read_text() == "changed\n"
    assert (work / "a.txt").read_text() == "one\n"
    assert "is outside the working folders" in texts[4]
    assert "the rule Read(./sub/**) matches" in texts[5]
    assert f"\n{tree(work)}" in texts[5]
    assert "is not removed: 1 changed file (a.txt)" in texts[6]
    assert "It is kept" in texts[7]
    assert texts[8].rstrip().endswith(f"{work}\nDone.")
    assert (git(work, "rev-parse", "HEAD"), git(work, "status", "--porcelain")) == before
    assert "Be brief." in texts[3].replace("Be brief, and uncommitted.", "")


@pytest.mark.parametrize(
    ("mode", "answer", "gone"),
    [
        pytest.param("bypassPermissions", None, False, id="no mode is a yes"),
        pytest.param("acceptEdits", None, False, id="no one is there to ask"),
        pytest.param("acceptEdits", "yes", True, id="a person says yes"),
    ],
)
async def test_unsaved_work_is_only_removed_with_a_yes(
    tmp_path: Path, mode: str, answer: str | None, gone: bool
) -> None:
    work = new_repository(tmp_path / "work")
    asked: list[str] = []

    async def can_use_tool(name: str, given: Any, _context: Any) -> Any:
        asked.append(name)
        return Allow(given)

    model = ScriptedModel([
        [use("w", "EnterWorktree", name="fix")],
        [use("f", "Write", file_path="new.txt", content="mine")],
        [use("x", "ExitWorktree", action="remove", discard_changes=True)],
        [say("Done.")],
    ])  # fmt: skip
    host = {"can_use_tool": can_use_tool} if answer else {}
    flags = {"allow_bypass": True} if mode == "bypassPermissions" else {}

    await ask(open_agent(work, model, mode=mode, host=host, flags=flags))

    assert tree(work).exists() is not gone
    assert ("worktree-fix" in git(work, "branch")) is not gone
    assert asked == (["ExitWorktree"] if answer else [])


async def test_the_flag_begins_in_a_worktree_that_goes_when_nothing_changed_and_stays_when_something_did(
    tmp_path: Path,
) -> None:
    work = new_repository(tmp_path / "work")
    notes: list[str] = []
    quiet = ScriptedModel([[use("p", "Bash", command="pwd")], [say("Done.")]])
    await ask(open_agent(work, quiet, worktree="fix", host={"on_warning": notes.append}))
    assert f"\n{tree(work)}" in user_text(quiet.requests[1])
    assert f"Working folder: {tree(work)}" in user_text(quiet.requests[0])
    assert (tree(work).exists(), git(work, "branch").split()) == (False, ["*", "main"])

    busy = ScriptedModel([[use("f", "Write", file_path="new.txt", content="mine")], [say("Done.")]])
    await ask(open_agent(work, busy, worktree="", host={"on_warning": notes.append}))
    [kept] = [each for each in tree(work, "").iterdir() if each.is_dir()]
    assert (kept / "new.txt").read_text() == "mine"
    assert f"The worktree is kept: {kept}, on the branch worktree-{kept.name}." in notes

    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(HandrailError, match="this folder is in no git repository"):
        await ask(open_agent(plain, ScriptedModel([]), worktree=""))


@pytest.mark.parametrize("by", ["session", "doctor"])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_worktree_whose_maker_was_killed_before_it_was_written_down_goes_with_the_next_start(
    tmp_path: Path, by: str, moment: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = new_repository(tmp_path / "work")
    real, own = shutil.which("git"), tmp_path / "bin" / "git"
    own.parent.mkdir()
    made = {"before": f"{real} branch worktree-fix", "after": f'{real} "$@"'}[moment]
    kill = f"case \"$*\" in *' worktree add '*) {made}; kill -9 $PPID; exit;; esac"
    own.write_text(f'#!/bin/sh\n{kill}\nexec {real} "$@"\n')
    own.chmod(0o755)
    env = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "IS_SANDBOX": "1"}
    whole = {**unmeasured(), **env, "PATH": f"{own.parent}:{os.environ['PATH']}", "ANTHROPIC_API_KEY": "key"}
    command = [str(program()), "-p", "hi", "--worktree", "fix"]
    killed = subprocess.run(command, cwd=work, env=whole, capture_output=True, timeout=60, check=False)
    assert (killed.returncode, tree(work).exists()) == (-9, moment == "after")
    assert "worktree-fix" in git(work, "branch")

    if by == "session":
        await ask(open_agent(work, ScriptedModel([[use("p", "Bash", command="pwd")], [say("Done.")]])))
    else:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(work)
        run(["doctor"])
        assert f"removed {tree(work)}, which a killed run had left" in " ".join(capsys.readouterr().out.split())
    assert (tree(work).exists(), git(work, "branch").split()) == (False, ["*", "main"])
    assert "prunable" not in git(work, "worktree", "list")
    assert not (tmp_path / "state/worktrees/pending").exists()


async def test_hooks_make_and_remove_worktrees_where_there_is_no_git(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    made = tmp_path / "copy"
    hook = {"type": "command", "command": f"mkdir -p {made}; echo {made}"}
    gone = {"type": "command", "command": f"rm -r {made}"}
    settings = {"hooks": {"WorktreeCreate": [{"hooks": [hook]}], "WorktreeRemove": [{"hooks": [gone]}]}}
    model = ScriptedModel([
        [use("w", "EnterWorktree", name="fix")],
        [use("f", "Write", file_path="new.txt", content="mine")],
        [use("x", "ExitWorktree", action="remove", discard_changes=True)],
        [say("Done.")],
    ])  # fmt: skip

    async def can_use_tool(_name: str, given: Any, _context: Any) -> Any:
        assert (made / "new.txt").read_text() == "mine"
        return Allow(given)

    await ask(open_agent(work, model, settings=settings, host={"can_use_tool": can_use_tool}))

    assert not made.exists()
    assert "It was removed" in user_text(model.requests[3])


async def test_a_program_of_the_project_is_never_taken_for_git(tmp_path: Path) -> None:
    work = new_repository(tmp_path / "work")
    planted = work / "bin/git"
    planted.parent.mkdir()
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o755)
    model = ScriptedModel([[use("w", "EnterWorktree", name="fix")], [say("Done.")]])

    await ask(open_agent(work, model, path=f"{planted.parent}:{os.environ['PATH']}"))

    assert "You work in the worktree" in user_text(model.requests[1])
    assert not (tmp_path / "ran").exists()


async def test_a_cleared_conversation_stays_in_its_worktree(tmp_path: Path) -> None:
    work = new_repository(tmp_path / "work")
    model = ScriptedModel(
        [
            [use("e", "EnterWorktree", name="fix")],
            [say("there")],
            [use("w", "Write", file_path="new.txt", content="mine\n")],
            [say("written")],
        ]
    )
    agent = open_agent(work, model)
    with anyio.fail_after(60):
        async with agent:
            await agent.ask("go")
            before = agent.session.id
            await agent.session.begin_next()
            async for _ in agent.session.drive(UserMessage((Text("write"),))):
                pass

    assert agent.session.id != before
    assert (tree(work) / "new.txt").read_text() == "mine\n"
    assert not (work / "new.txt").exists()
