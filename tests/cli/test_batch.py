"""`handrail batch`, as a process, against a model server on loopback."""

import asyncio
import io
import json
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_run import Ran, variables
from tests.forked import program

from handrail.batch.cells import Cell, CellAttempt, CellLimits, CellSettings
from handrail.batch.results import AttemptLog, BatchFolder, CellResult
from handrail.batch.run_cells import AttemptEnd, RunLimits, run_cells
from handrail.batch.seal import Seal
from handrail.batch.tasks import BatchTask
from handrail.cli.batch_text import BatchProgress
from handrail.cli.main import run
from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

SECONDS = 120
CHECK = 'test -f a.txt && test -n "$HOME" && test -z "$ANTHROPIC_API_KEY"'
HELLO = Reply((Text("Hello."),))
WRITE = Reply((ToolUse("t1", "Write", {"file_path": "made.txt", "content": "x"}),))
STALL = Reply((Text("Hello."),), stall_after=0)
DOWN = Reply(status=529, error="overloaded", headers={"x-should-retry": "false"})


@dataclass(frozen=True, slots=True)
class Batch:
    """A folder with tasks, and the server that their agents ask."""

    folder: Path
    server: ModelServer

    @property
    def temporary(self) -> Path:
        """Where its working copies lie."""
        return self.folder / "tmp"

    @property
    def results(self) -> list[dict[str, Any]]:
        lines = (self.folder / "out" / "results.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def write(self, *tasks: dict[str, Any]) -> None:
        self.temporary.mkdir()
        (self.folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))

    async def start(self, *flags: str, **more: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            program(),
            *("batch", "run", "tasks.jsonl", "--out", "out", *flags),
            cwd=self.folder,
            env=variables(self.server, self.folder) | {"ANTHROPIC_API_KEY": "k", "TMPDIR": str(self.temporary)} | more,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *flags: str, **more: str) -> Ran:
        process = await self.start(*flags, **more)
        out, errors = await process.communicate()
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), errors.decode())


@asynccontextmanager
async def served(folder: Path, *replies: Reply) -> AsyncIterator[Batch]:
    """A batch whose server runs, within a bounded time."""
    async with asyncio.timeout(SECONDS), ModelServer(replies, strict=True) as server:
        yield Batch(folder, server)


async def test_only_what_is_missing_runs_after_a_kill_and_two_at_once_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path, HELLO, STALL, HELLO) as batch:
        batch.write(
            {"id": "a", "prompt": "Say hello.", "files": {"a.txt": "a"}, "check": CHECK, "tags": ["x"]},
            {"id": "b", "prompt": "Say hello.", "check": "echo no; exit 3"},
        )
        process = await batch.start("--jobs", "1")
        await batch.server.stalled.wait()

        second = await batch.run()
        assert (second.code, "another handrail batch run works in out." in second.errors) == (2, True)
        process.kill()
        await process.wait()
        await batch.server.left.wait()  # the agent of the second cell has gone, too
        assert [(each["task"], each["status"]) for each in batch.results] == [("a", "solved")]
        with (tmp_path / "out" / "results.jsonl").open("a") as file:
            file.write('{"version": 1, "ke')

        again = await batch.run("--jobs", "1", "--json")
        nothing = await batch.run("--json")

    assert again.code == nothing.code == 0
    assert [(each["task"], each["status"], each["why"], each["text"]) for each in again.lines] == [
        ("b", "failed", "check exit code 3", "no")
    ]
    assert nothing.out == ""
    assert [(each["attempts"], each["unpriced_attempts"]) for each in again.lines] == [(2, 1)]
    assert "1 of 2 cells finished already" in again.errors
    assert "2 of 2 cells done, 1 solved" in again.errors
    assert len(batch.server.requests) == 3
    assert [*batch.temporary.iterdir()] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(".handrail/settings.json", '{"permissions": {"deny": ["Bash"]}}', id="a rule"),
        pytest.param(".claude/settings.json", '{"env": {"A": "b"}}', id="a variable for tools"),
        pytest.param(".handrail/mcp.json", '{"mcpServers": {"a": {"command": "none"}}}', id="a server"),
        pytest.param(".claude/CLAUDE.md", "Answer in verse.", id="memory"),
        pytest.param(".handrail/skills/rhyme/SKILL.md", "---\ndescription: Rhymes.\n---\nRhyme.", id="a skill"),
        pytest.param(".claude/agents/poet.md", "---\nname: poet\ndescription: Poems.\n---\nRhyme.", id="an agent"),
    ],
)
async def test_a_result_made_under_another_configuration_of_the_user_is_not_reused(
    name: str, text: str, tmp_path: Path
) -> None:
    file = tmp_path / "home" / name
    file.parent.mkdir(parents=True)
    async with served(tmp_path, HELLO, HELLO) as batch:
        batch.write({"id": "a", "prompt": "Say hello.", "check": "true"})
        await batch.run()
        file.write_text(text)
        changed = await batch.run()
        same = await batch.run()

    assert (changed.code, same.code, len(batch.server.requests)) == (0, 0, 2), changed.errors
    assert "1 cell changed since the last run and will run again: the task, its folder, " in changed.errors
    assert "1 of 1 cell finished already" in same.errors


async def test_a_skill_behind_a_link_counts_and_a_link_to_nothing_stops_no_batch(tmp_path: Path) -> None:
    skill, skills = tmp_path / "dotfiles" / "rhyme" / "SKILL.md", tmp_path / "home" / ".claude" / "skills"
    for folder in (skill.parent, skills):
        folder.mkdir(parents=True)
    skill.write_text("---\ndescription: Rhymes.\n---\nRhyme.")
    (skills / "rhyme").symlink_to(skill.parent)
    (skills / "gone").symlink_to(tmp_path / "nothing")
    async with served(tmp_path, HELLO, HELLO) as batch:
        batch.write({"id": "a", "prompt": "Say hello.", "check": "true"})
        first = await batch.run()
        skill.write_text("---\ndescription: Rhymes.\n---\nRhyme better.")
        changed = await batch.run()

    assert (first.code, changed.code) == (0, 0), first.errors
    assert "1 cell changed since the last run" in changed.errors


async def test_how_a_terminal_looks_and_where_the_configuration_lies_do_not_make_results_old(tmp_path: Path) -> None:
    for folder, theme in (("home/.handrail", "dark"), ("moved", "light")):
        (tmp_path / folder).mkdir(parents=True)
        settings = {"theme": theme, "permissions": {"deny": ["Bash"]}, "of_another_program": theme}
        (tmp_path / folder / "settings.json").write_text(json.dumps(settings))
    async with served(tmp_path, HELLO, HELLO) as batch:
        batch.write({"id": "a", "prompt": "Say hello.", "check": "true"})
        await batch.run()
        same = await batch.run(HANDRAIL_CONFIG_DIR=str(tmp_path / "moved"))
        assert ("changed" in same.errors, len(batch.results)) == (False, 1)
        other_model = await batch.run(ANTHROPIC_MODEL="another")

    assert ("1 cell changed since" in other_model.errors, len(batch.results)) == (True, 2)


async def test_a_recorded_batch_replays_without_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with served(tmp_path, HELLO) as batch:
        batch.write({"id": "a", "prompt": "Say hello.", "check": "true"})
        await batch.run("--record", "--model", "some/model:1")
        (tmp_path / "out").rename(tmp_path / "recorded")
        again = await batch.run("--replay", "recorded", "--model", "some/model:1")
        other = await batch.run("--replay", "recorded", "--model", "other")

    assert (again.code, other.code, len(batch.server.requests)) == (0, 1, 1)
    assert [(each["status"], each["why"]) for each in batch.results] == [
        ("solved", "completed"),
        ("infrastructure", "not started"),
    ]


@pytest.mark.proves("R8")
async def test_ctrl_c_ends_the_agents_and_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    async with served(tmp_path, STALL) as batch:
        batch.write({"id": "a", "prompt": "Say hello."})
        process = await batch.start()
        await batch.server.stalled.wait()
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()
        await batch.server.left.wait()

    assert process.returncode == 130
    assert "It was stopped. The same command goes on with what is missing." in errors.decode()
    assert (batch.results, [*batch.temporary.iterdir()]) == ([], [])


async def test_errors_of_the_infrastructure_are_listed_apart_and_tried_again_by_the_next_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(tmp_path, DOWN, HELLO) as batch:
        batch.write({"id": "a", "prompt": "Say hello.", "check": "true"})
        first = await batch.run("--retries", "0")
        assert run(["batch", "report", str(tmp_path / "out"), "--json"]) == 0
        between = json.loads(capsys.readouterr().out)
        second = await batch.run("--retries", "0")

    assert (first.code, second.code) == (1, 0)
    assert "handrail: a: rate limit: overloaded" in first.errors
    assert "tries again what the infrastructure ended" in first.errors
    assert (between["total"]["counted"], between["total"]["rate"]) == (0, None)
    (error,) = between["infrastructure"]
    assert (error["task"], error["why"], "overloaded" in error["text"]) == ("a", "rate limit", True)
    assert [each["status"] for each in batch.results] == ["infrastructure", "solved"]


@pytest.mark.proves("R9")
async def test_policies_are_compared_and_what_a_task_folder_brings_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = tmp_path / "hostile"
    (hostile / ".handrail").mkdir(parents=True)
    marker = tmp_path / "ran"
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {marker}"}]}]}
    widening = {"permissions": {"allow": ["Write", "Bash"]}, "hooks": hooks}
    (hostile / ".handrail" / "settings.json").write_text(json.dumps(widening))
    (hostile / "argparse.py").write_text(f"open({str(marker)!r}, 'w')")
    (tmp_path / "strict.json").write_text("{}")
    (tmp_path / "wide.json").write_text('{"permissions": {"allow": ["Write"]}}')
    async with served(tmp_path, *[WRITE, HELLO] * 2, WRITE) as batch:
        batch.write({"id": "a", "prompt": "Make it.", "folder": "hostile", "check": "test -f made.txt"})
        ran = await batch.run("--jobs", "1", "--settings", "strict.json", "wide.json")
        assert (ran.code, marker.exists()) == (0, False)
        (hostile / "argparse.py").unlink()
        trusted = await batch.run("--trust", "--max-turns", "1", "--settings", "strict.json", "--out", "b", "--json")

    assert ([(each["status"], each["why"]) for each in trusted.lines], marker.exists()) == (
        [("solved", "max_turns")],
        True,
    )
    strict, wide = batch.results
    assert (strict["settings"], strict["status"], strict["denials"], strict["unasked"]) == ("strict", "failed", 1, 1)
    assert (wide["settings"], wide["status"], wide["denials"]) == ("wide", "solved", 0)

    assert run(["batch", "report", str(tmp_path / "out"), "--compare", "wide", "strict"]) == 0
    text = capsys.readouterr().out
    assert "1 of 2 cells solved" in text
    assert "1 pair: both solved 0, only wide 1, only strict 0, neither 0; exact McNemar p = 1." in text
    assert run(["batch", "report", str(tmp_path / "out"), "--compare", "wide", "strikt"]) == 2
    assert "there are no results of 'strikt'. Did you mean 'strict'?" in capsys.readouterr().err


async def test_what_cannot_be_started_is_not_tried_a_hundred_times(tmp_path: Path) -> None:
    async with served(tmp_path) as batch:
        batch.write({"id": "a", "prompt": "Say hello."})
        (tmp_path / "none" / "cassettes").mkdir(parents=True)
        ran = await batch.run("--jobs", "1", "--trials", "100", "--replay", "none")

    assert (ran.code, len(batch.results)) == (1, 3)
    assert "none of the first 3 cells could be started: " in ran.errors
    assert "a+default+default+3.jsonl" in ran.errors


async def test_a_planted_result_is_neither_believed_nor_lost_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(tmp_path, HELLO, HELLO) as batch:
        batch.write({"id": "a", "prompt": "Say hello.", "check": "false"})
        await batch.run()
        (failed,) = batch.results
        (tmp_path / "out" / "results.jsonl").write_text(json.dumps({**failed, "status": "solved"}) + "\n")
        refused = await batch.run()
        adopted = await batch.run("--adopt", "--json")
        assert run(["batch", "report", str(tmp_path / "out")]) == 0
        report = " ".join(capsys.readouterr().out.split())
        (tmp_path / "out" / "results.jsonl").write_text("")
        again = await batch.run("--json")

    assert (refused.code, adopted.code, adopted.out) == (2, 0, "")
    assert "out/results.jsonl:1: a result that your handrail did not write on this machine. Remove it" in refused.errors
    assert "1 result, not written by your handrail on this machine, cannot be vouched for." in report
    assert [(each["status"], each["attempts"]) for each in again.lines] == [("failed", 2)]


async def test_a_run_over_its_time_has_failed_and_is_not_checked(tmp_path: Path) -> None:
    async with served(tmp_path, STALL) as batch:
        batch.write({"id": "a", "prompt": "Say hello.", "check": f"touch {tmp_path}/checked"})
        ran = await batch.run("--timeout", "2")

    assert ran.code == 0
    assert [(each["status"], each["why"]) for each in batch.results] == [("failed", "timeout")]
    assert not (tmp_path / "checked").exists()


async def test_errors_of_the_infrastructure_are_tried_again_with_growing_pauses(tmp_path: Path) -> None:
    pauses: list[float] = []
    finished: list[CellResult] = []

    class Down:
        async def run(self, attempt: CellAttempt) -> AttemptEnd:
            is_up = attempt.number == 3
            status = "solved" if is_up else "infrastructure"
            result = CellResult(attempt.cell.key, *attempt.cell.place, status, "", attempts=attempt.number)
            return AttemptEnd(result, retryable=not is_up)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    cell = Cell(BatchTask(id="a", prompt="Say hello.", check="true"), "", "", CellSettings(), 1, CellLimits())
    log = AttemptLog(BatchFolder(tmp_path), Seal(b"k"))
    await run_cells([cell], Down(), log, RunLimits(retries=2, sleep=sleep), finished.append)
    log.close()

    assert ([(each.status, each.attempts) for each in finished], pauses) == ([("solved", 3)], [5.0, 10.0])


async def test_what_attempts_cost_that_the_infrastructure_ended_is_in_the_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(tmp_path, WRITE, DOWN, HELLO) as batch:
        batch.write({"id": "a", "prompt": "Say hello.", "check": "true"})
        for _ in range(2):
            await batch.run("--retries", "0", HANDRAIL_MODEL_PRICE="1000,1000")
    assert run(["batch", "report", str(tmp_path / "out"), "--json"]) == 0
    total = json.loads(capsys.readouterr().out)["total"]

    failed, solved = batch.results
    assert (failed["status"], solved["status"], solved["attempts"]) == ("infrastructure", "solved", 2)
    assert solved["lost_dollars"] == failed["dollars"] > 0
    assert total["cost_usd"] == pytest.approx(failed["dollars"] + solved["dollars"])
    assert (total["lost_usd"], total["cost_per_solve_usd"]) == (failed["dollars"], solved["dollars"])
    assert run(["batch", "report", str(tmp_path / "out")]) == 0
    assert "of the cost went to attempts that the infrastructure ended" in " ".join(capsys.readouterr().out.split())


async def test_a_folder_that_is_gone_or_in_which_the_check_cannot_be_put_has_failed(tmp_path: Path) -> None:
    for name, command in (("gone", 'rm -r "$PWD"'), ("blocked", "mkdir check.py")):
        hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
        (tmp_path / f"{name}.json").write_text(json.dumps({"hooks": hooks}))
    async with served(tmp_path, HELLO, HELLO) as batch:
        check = {"check": "python3 check.py", "check_files": {"check.py": "print('ok')"}}
        batch.write({"id": "a", "prompt": "Tidy up.", **check})
        ran = await batch.run("--jobs", "1", "--settings", "gone.json", "blocked.json")

    assert ran.code == 0
    assert [(each["settings"], each["status"], each["why"]) for each in batch.results] == [
        ("gone", "failed", "the working copy is gone"),
        ("blocked", "failed", "check files"),
    ]


async def test_the_check_does_not_follow_a_link_in_place_of_the_working_copy(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    command = f'rm -r "$PWD" && ln -s {outside} "$PWD"'
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
    (tmp_path / "linked.json").write_text(json.dumps({"hooks": hooks}))
    async with served(tmp_path, HELLO) as batch:
        batch.write({"id": "a", "prompt": "Tidy up.", "check": "touch checked"})
        await batch.run("--settings", "linked.json")

    assert [(each["status"], each["why"]) for each in batch.results] == [("failed", "the working copy is gone")]
    assert [*outside.iterdir()] == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_far_it_is_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    solved = CellResult("k", "a", "m", "s", 1, "solved", "", dollars=0.5)

    progress = BatchProgress(3, [solved])
    progress.add(solved)
    progress.add(CellResult("k", "a", "m", "s", 2, "infrastructure", "connection"))
    progress.end(Path("out"), is_stopped=False)

    assert isinstance(sys.stderr, Terminal)
    first, *lines = sys.stderr.getvalue().splitlines()
    assert first == "handrail: 1 of 3 cells finished already"
    assert "\r\x1b[K1 of 3 cells done, 1 solved, $0.5000" in sys.stderr.getvalue()
    assert "\r\x1b[K2 of 3 cells done, 2 solved, 1 infrastructure error, $1.00, " in sys.stderr.getvalue()
    assert lines[-1].endswith("adds it up. The same command tries again what the infrastructure ended.")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        pytest.param(["--settings", "gone.json"], "No such file or directory (gone.json)", id="no settings"),
        pytest.param(["--settings", "broken.json"], "broken.json is not JSON", id="settings that are no JSON"),
        pytest.param(["--settings", "list.json"], "list.json is not a JSON object", id="settings that are a list"),
        pytest.param(["--out", "shop/out"], "lies in the folder of the task 'a', which is copied.", id="out inside"),
        pytest.param(["--trials", "0"], "'0' is not a whole number above 0", id="no trials"),
        pytest.param(["--replay", "shop"], "--replay: shop has no folder cassettes.", id="nothing recorded"),
        pytest.param(["--record", "--replay", "x"], "not allowed with argument", id="record and replay"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_runs(
    flags: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "prompt": "x", "folder": "shop"}\n')

    try:
        code = run(["batch", "run", "tasks.jsonl", "--out", "out", *flags])
    except SystemExit as end:
        code = int(end.code or 0)

    assert code
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "out" / "results.jsonl").exists()


def test_a_full_disk_ends_the_batch_and_loses_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = b"\n" * 100_000
    (tmp_path / "out" / "cassettes").mkdir(parents=True)
    (tmp_path / "out" / "results.jsonl").write_bytes(before)
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "prompt": "x"}\n')
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, hard))
    try:
        code = run(["batch", "run", "tasks.jsonl", "--out", "out", "--replay", "out", "--retries", "0"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert code == 1
    assert "cannot be written: File too large. Make room, and start the same command again" in capsys.readouterr().err
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before


def test_a_file_of_tasks_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    good, bad = '{"id": "a", "prompt": "x"}\n', '{"id": "a", "prompt": ""}\n'
    (tmp_path / "tasks.jsonl").write_text(good + bad)

    assert run(["batch", "check", "tasks.jsonl"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "tasks.jsonl:2: The prompt is empty. Say what is to be done.",
        "tasks.jsonl:2: The id 'a' is that of line 1 already. Give another.",
        "2 problems",
    ]
    assert run(["batch", "run", "tasks.jsonl", "--out", "out"]) == 2
    assert "The prompt is empty." in capsys.readouterr().err
    (tmp_path / "tasks.jsonl").write_text(good)
    assert run(["batch", "check", "tasks.jsonl"]) == 0
    assert capsys.readouterr().out == "1 task, 1 of them without a check. No problems.\n"
    assert run(["batch", "check", "tasks.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "tasks": 1, "problems": []}
    assert run(["batch", "check", "gone.jsonl"]) == run(["batch", "report", "gone"]) == 2
    assert "gone holds no results. Give the folder of --out." in capsys.readouterr().err


def test_names_in_planted_results_make_no_lines_of_their_own_in_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "\x1b[2Ja\nall cells solved"
    planted = {"key": "k", "task": name, "model": name, "settings": "s", "trial": 1, "status": "failed", "why": name}
    (tmp_path / "results.jsonl").write_text(json.dumps({"version": 1, **planted}) + "\n")
    (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "cells": [[name, name, "s", 1, "k"]]}))

    for by in ("model", "task"):
        assert run(["batch", "report", str(tmp_path), "--by", by]) == 0
        shown = capsys.readouterr().out

        assert "all cells solved" in shown
        assert "\nall cells solved" not in shown
        assert "\x1b[2J" not in shown
