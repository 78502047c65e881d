"""A lead plans, asks, lets four agents edit one file in worktrees, and merges; killed anywhere, nothing is lost."""

import os
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent, Allow
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolUse
from handrail.session.spec import SessionHost, SessionSpec
from handrail.testing.model import say, use
from handrail.testing.model_server import Reply
from tests.session.agents_model import AgentsModel
from tests.session.test_subagents import delegate
from tests.transcripts.killing import ran, said, victim

pytestmark = pytest.mark.anyio

ID = "aaaa1111-0000-4000-8000-00000000beef"
MERGE = "for b in $(git branch --list 'worktree-*' --format='%(refname:short)'); do git merge -q --no-edit $b; done"


def git(folder: Path, *words: str) -> str:
    env = {"HOME": str(folder.parent / "home"), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", *words], cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


def repository(folder: Path) -> Path:
    """A file of forty lines, committed; commits need no more than what is in the home folder."""
    (folder / "home").mkdir()
    (folder / "home" / ".gitconfig").write_text(
        "[user]\n\tname = a\n\temail = a@b.example\n[init]\n\tdefaultBranch = main\n"
    )
    work = folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("".join(f"line {n:02}\n" for n in range(40)))
    git(work, "init", "-q")
    (work / ".git" / "info").mkdir(exist_ok=True)
    (work / ".git" / "info" / "exclude").write_text("state/\nhome/\n")
    git(work, "add", "a.txt")
    git(work, "commit", "-qm", "first")
    return work


def edit(number: int) -> dict[str, Any]:
    return {
        "file_path": "a.txt",
        "old_string": f"line {number}5\n",
        "new_string": f"line {number}5 by agent {number}\n",
    }


async def test_a_lead_plans_asks_delegates_to_four_worktrees_and_merges(tmp_path: Path) -> None:
    work = repository(tmp_path)
    env = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PATH": os.environ["PATH"]}
    asked: list[str] = []

    async def person(name: str, given: Mapping[str, Any], _question: Any) -> Any:
        asked.append(name)
        if name == "AskUserQuestion":
            return Allow({**given, "answers": {"Which lines?": "all"}})
        return Allow()

    question = {
        "question": "Which lines?",
        "header": "Lines",
        "options": [{"label": "all", "description": "all"}, {"label": "some", "description": "some"}],
        "multiSelect": False,
    }
    agents: dict[str, Any] = {
        f"agent {n}": [
            [use(f"r{n}", "Read", file_path="a.txt")],
            [use(f"e{n}", "Edit", **edit(n))],
            [use(f"c{n}", "Bash", command=f"git commit -qam 'agent {n}'")],
            [say(f"Changed line {n}5.")],
        ]
        for n in range(4)
    }
    plan: list[Any] = []
    model = AgentsModel(
        {
            "go": [
                [use("p", "EnterPlanMode")],
                plan,
                [use("q", "AskUserQuestion", questions=[question])],
                [use("x", "ExitPlanMode")],
                [delegate(n, f"agent {n}", isolation="worktree") for n in range(4)],
                [use("m", "Bash", command=MERGE)],
                [say("Merged.")],
            ],
            **agents,
        },
        contains=True,
    )
    flags = SettingsFlags(sources=(), managed_policy=False, allowed=("Bash", "Edit"))
    with anyio.fail_after(120):
        spec, host = SessionSpec(work, flags=flags), SessionHost(model=model, can_use_tool=person)
        async with Agent.from_spec(spec, env, host) as agent:
            plan.append(use("w", "Write", file_path=str(agent.session.services().plan_file), content="Four agents."))
            assert (await agent.ask("go")).text == "Merged."

    assert asked[:2] == ["AskUserQuestion", "ExitPlanMode"]
    lines = (work / "a.txt").read_text().splitlines()
    assert [line for line in lines if "by agent" in line] == [f"line {n}5 by agent {n}" for n in range(4)]
    assert len(lines) == 40
    assert git(work, "status", "--porcelain") == ""


KILLS = random.Random(7).sample(range(1, 12), 3)


@pytest.mark.parametrize("requests", KILLS)
async def test_killed_anywhere_every_agent_is_told_of_once_and_its_work_is_there(tmp_path: Path, requests: int) -> None:
    """Two agents in worktrees and a message; the process is killed when the model was asked so often."""
    work = repository(tmp_path)
    head = git(work, "rev-parse", "HEAD")
    apart = {"isolation": "worktree", "run_in_background": True}
    calls = tuple(
        ToolUse(f"a{n}", "Agent", {"description": f"task {n}", "prompt": f"hand {n}", "name": f"n{n}", **apart})
        for n in range(2)
    )
    replies = [
        Reply(calls, to="zeppelin"),
        Reply((ToolUse("m", "SendMessage", {"to": "n0", "message": "zebra"}),), to="zeppelin"),
        *(Reply((Text("Waiting."),), to="zeppelin") for _ in range(4)),
    ]
    for n in range(2):
        replies += [
            Reply((ToolUse(f"r{n}", "Read", {"file_path": "a.txt"}),), to=f"hand {n}"),
            Reply((ToolUse(f"e{n}", "Edit", edit(n)),), to=f"hand {n}"),
            *(Reply((Text(f"Changed {n}."),), to=f"hand {n}") for _ in range(3)),
        ]
    flags = ("--permission-mode", "acceptEdits")
    async with victim(replies, work, "-p", "zeppelin", "--session-id", ID, *flags) as running:
        while len(running.server.requests) < requests and running.process.returncode is None:
            await anyio.sleep(0.002)
        if running.process.returncode is None:
            await running.kill()

    again = await ran([Reply((Text("Here again."),))] * 3, work, "-p", "go on", "--resume", ID)

    assert again.code == 0, again.errors
    assert git(work, "rev-parse", "HEAD") == head
    assert git(work, "status", "--porcelain") == ""
    git(work, "fsck", "--strict")
    texts = [str(block.get("text") or block.get("content")) for block in said(again.requests[-1])]
    kept = sorted((tmp_path / "work" / "state" / "sessions").glob(f"*/{ID}/subagents/agent-*.json"))
    for record in kept:
        ends = sum(f"sub-agent {record.stem} (" in text and "general-purpose: task" in text for text in texts)
        assert ends == 1, (record.stem, texts)
    changed = [path for path in (work / ".handrail" / "worktrees").glob("*/a.txt") if "by agent" in path.read_text()]
    assert all(f"worktree-{path.parent.name}" in git(work, "branch", "--list") for path in changed)
    mail = list((tmp_path / "work" / "state").glob(f"runs/{ID}/mail/*/*.json"))
    read = sum("zebra" in path.read_text() for path in (work / "state").glob(f"sessions/*/{ID}/subagents/*.jsonl"))
    was_sent = any("Sent to n0" in text for text in texts)
    assert len(mail) + read == 1 if was_sent else len(mail) + read <= 1
