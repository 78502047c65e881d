"""A lead plans, asks, lets four agents edit one file in worktrees, and merges; killed anywhere, nothing is lost."""

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from handrail import Agent, Allow
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolUse
from handrail.session.spec import SessionHost, SessionSpec
from handrail.testing.model import say, use
from handrail.testing.model_server import Reply
from tests.session.agents.test_subagents import delegate
from tests.session.agents_model import AgentsModel
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
    work = folder / "work"
    for home in (folder / "home", work / "home"):
        home.mkdir(parents=True)
        (home / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@b.example\n[init]\n\tdefaultBranch = main\n")
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


FINISH = (
    "grep -q 'by agent {n}' a.txt || sed -i 's/^line {n}5$/line {n}5 by agent {n}/' a.txt; "
    "git diff --quiet HEAD || git commit -qam 'agent {n}'"
)
"""What an agent does that goes on, however far it got."""


class Lead:
    """The lead of four agents as a real process, and the person who answers it."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.head = git(work, "rev-parse", "HEAD")
        self.printed: list[dict[str, Any]] = []

    def replies(self, *, background: bool) -> list[Reply]:
        """It plans, asks, starts four agents, and merges; in the background, it waits for their ends."""
        question = {
            "question": "Which lines?",
            "header": "Lines",
            "options": [{"label": "all", "description": "all"}, {"label": "some", "description": "some"}],
            "multiSelect": False,
        }
        plan = {"file_path": str(self.work / "state" / "runs" / ID / "plan.md"), "content": "Four agents."}
        apart = {"isolation": "worktree", "run_in_background": background}
        tasks = tuple(
            ToolUse(f"a{n}", "Agent", {"description": f"task {n}", "prompt": f"hand {n}", **apart}) for n in range(4)
        )
        lead: list[Any] = [
            (ToolUse("p", "EnterPlanMode", {}),),
            (ToolUse("w", "Write", plan),),
            (ToolUse("q", "AskUserQuestion", {"questions": [question]}),),
            (ToolUse("x", "ExitPlanMode", {}),),
            tasks,
        ]
        lead += (
            [(Text("Waiting."),)] * 6 if background else [(ToolUse("m", "Bash", {"command": MERGE}),), (Text("Ok."),)]
        )
        agents: list[Any] = [
            Reply(content, to=f"hand {n}")
            for n in range(4)
            for content in (
                (ToolUse(f"r{n}", "Read", {"file_path": "a.txt"}),),
                (ToolUse(f"e{n}", "Edit", edit(n)),),
                (ToolUse(f"c{n}", "Bash", {"command": f"git commit -qam 'agent {n}'"}),),
                (Text(f"Changed {n}."),),
            )
        ]
        return [*(Reply(content, to="zeppelin") for content in lead), *agents]

    def replies_after(self) -> list[Reply]:
        """It lets agents go on that had not ended, starts those that never began, and merges."""
        done, begun = set[int](), dict[int, str]()
        for file in (self.work / "state" / "sessions").glob(f"*/{ID}/subagents/agent-*.json"):
            kept = json.loads(file.read_text())
            number = int(kept["description"].removeprefix("task "))
            begun[number] = file.stem
            if kept["status"] == "completed":
                done.add(number)
        calls = tuple(
            ToolUse(
                f"again{n}",
                "Agent",
                {
                    "description": f"task {n}",
                    "prompt": f"hand {n}, go on",
                    "run_in_background": False,
                    **({"resume": begun[n]} if n in begun else {"isolation": "worktree"}),
                },
            )
            for n in range(4)
            if n not in done
        )
        finish = (ToolUse("merge", "Bash", {"command": MERGE}),)
        lead = [Reply(content, to="zeppelin") for content in (calls, finish, (Text("Merged."),)) if content]
        for n in range(4):
            lead += [
                Reply((ToolUse(f"f{n}", "Bash", {"command": FINISH.format(n=n)}),), to=f"hand {n}"),
                Reply((Text(f"Done {n}."),), to=f"hand {n}"),
            ]
        return lead

    async def work_until_killed(self, lines: int, *, background: bool) -> None:
        """Let it work until it has printed so many lines, or all is done, and kill it there."""
        both_ways = ("--input-format", "stream-json", "--permission-prompt-tool", "stdio")
        flags = (*both_ways, "--permission-mode", "acceptEdits", "--session-id", ID)
        replies, states = self.replies(background=background), "1"
        async with victim(replies, self.work, *flags, CLAUDE_CODE_SDK_READS_SESSION_STATE=states) as running:
            running.prompt("zeppelin")
            assert running.process.stdout is not None
            while len(self.printed) < lines and not self._is_done(background=background):
                line = json.loads(await running.process.stdout.readline())
                self.printed.append(line)
                if line["type"] == "control_request":
                    running.give(answered(line))
            await running.kill()
        await gone(self.work)
        self._unlock()

    def _unlock(self) -> None:
        """What a person does where git itself was killed: its locks go, and so does half a merge."""
        for lock in (self.work / ".git").rglob("*.lock"):
            lock.unlink()
        if self.has_begun_to_merge():
            git(self.work, "reset", "-q", "--hard")

    def _is_done(self, *, background: bool) -> bool:
        """Whether nothing more comes: it is idle, and all agents in the background have ended."""
        states = [line["state"] for line in self.printed if line.get("subtype") == "session_state_changed"]
        ends = sum(line.get("subtype") == "task_notification" for line in self.printed)
        has_result = any(line["type"] == "result" for line in self.printed)
        return states[-1:] == ["idle"] and has_result and (ends == 4 or not background)

    def has_begun_to_merge(self) -> bool:
        """A call that needs no yes starts while its answer is still being read, so that it may not be printed yet."""
        [transcript] = (self.work / "state" / "sessions").glob(f"*/{ID}.jsonl")
        events = [json.loads(line) for line in transcript.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return any((each.get("event"), each.get("id")) == ("began", "m") for each in events)


def answered(asked: dict[str, Any]) -> dict[str, Any]:
    """A person agrees, and answers what the lead asks."""
    given = asked["request"]["input"]
    answers = {"answers": {"Which lines?": "all"}} if asked["request"]["tool_name"] == "AskUserQuestion" else {}
    response = {"behavior": "allow", "updatedInput": {**given, **answers}}
    inner = {"subtype": "success", "request_id": asked["request_id"], "response": response}
    return {"type": "control_response", "response": inner}


def blocks(line: dict[str, Any]) -> list[dict[str, Any]]:
    content = line.get("message", {}).get("content", [])
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


async def gone(folder: Path) -> None:
    """Wait until no process works below the folder: what was started ends with what started it."""
    with anyio.fail_after(30):
        while any(is_below(folder, process) for process in Path("/proc").glob("[0-9]*")):
            await anyio.sleep(0.01)


def is_below(folder: Path, process: Path) -> bool:
    try:
        return (process / "cwd").readlink().is_relative_to(folder)
    except OSError:
        return False


async def kill_and_go_on(folder: Path, lines: int, *, background: bool) -> None:
    """Kill the lead after so many lines, go on, and look whether all that was done is there once."""
    lead = Lead(repository(folder))
    work = lead.work
    await lead.work_until_killed(lines, background=background)
    git(work, "fsck", "--strict")
    if not lead.has_begun_to_merge():
        assert (git(work, "rev-parse", "HEAD"), git(work, "status", "--porcelain")) == (lead.head, "")

    flags = ("--permission-mode", "acceptEdits", "--allowedTools", "Bash,Agent")
    again = await ran(lead.replies_after(), work, "-p", "go on", "--resume", ID, *flags)

    assert again.code == 0, again.errors
    assert again.printed[-1]["result"] == "Merged."
    results = [block["tool_use_id"] for block in said(again.requests[0]) if block.get("type") == "tool_result"]
    assert len(results) == len(set(results))
    shown = {block["id"] for line in lead.printed for block in blocks(line) if block.get("type") == "tool_use"}
    assert {use for use in shown if use[0] in "pwqxam"} <= set(results)  # no call that was shown is lost
    lines_now = (work / "a.txt").read_text().splitlines()
    assert [line for line in lines_now if "by agent" in line] == [f"line {n}5 by agent {n}" for n in range(4)]
    assert len(lines_now) == 40
    assert sorted(git(work, "log", "--no-merges", "--format=%s").splitlines()) == [
        *(f"agent {n}" for n in range(4)),
        "first",
    ]
    assert git(work, "status", "--porcelain") == ""
    git(work, "fsck", "--strict")


@settings(max_examples=max(3, settings().max_examples // 40), suppress_health_check=list(HealthCheck))
@given(lines=st.integers(2, 90), background=st.booleans())
@example(lines=24, background=False)
@pytest.mark.proves("R13")
def test_killed_anywhere_the_session_goes_on_and_four_agents_merge_what_each_did_once(
    tmp_path_factory: pytest.TempPathFactory, lines: int, background: bool
) -> None:
    asyncio.run(kill_and_go_on(tmp_path_factory.mktemp("killed"), lines, background=background))


@pytest.mark.parametrize("requests", [6, 11])
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
    # not lost, and read once; killed between these two, it is in the history and still in its box, where its mark tells
    assert (len(mail) <= 1, read <= 1, bool(mail or read) or not was_sent) == (True, True, True), (mail, read, was_sent)
