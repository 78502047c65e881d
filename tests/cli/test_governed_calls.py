"""What the rails decide about one call, seen from the command line: real settings, real hooks, the audit log."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.forked import program

NOBODY_ASKED = "there is no one to ask"


class Place:
    """A project, a home and a state folder of one person."""

    def __init__(self, folder: Path) -> None:
        self.project, self.home, self.state = folder / "project", folder / "home", folder / "state"
        self.warnings = ""
        self.project.mkdir()
        self.home.mkdir()

    def call(self, tool: str, *flags: str, env: dict[str, str] | None = None, **values: Any) -> dict[str, Any]:
        """The outcome of a call, as `--json` gives it."""
        ran = subprocess.run(
            [program(), "call", "--json", *flags, tool, json.dumps(values)],
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={
                **os.environ,
                "HOME": str(self.home),
                "HANDRAIL_STATE_DIR": str(self.state),
                "IS_SANDBOX": "1",
                **(env or {}),
            },
        )
        self.warnings = ran.stderr
        outcome: dict[str, Any] = json.loads(ran.stdout)
        return outcome

    def audited(self) -> list[dict[str, Any]]:
        """Every decision in the audit log."""
        files = [path for path in (self.state / "audit").rglob("*") if path.is_file()]
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def layers(outcome: dict[str, Any]) -> list[tuple[str, str]]:
    return [(opinion["layer"], opinion["verdict"]) for opinion in outcome["decision"]["opinions"]]


def test_in_plan_mode_reads_run_and_changes_do_not_whatever_allows_them(place: Place) -> None:
    (place.project / "a").write_text("one\n")
    plan = ("--permission-mode", "plan")

    assert place.call("Read", *plan, file_path="a")["status"] == "ok"
    assert place.call("Bash", *plan, command="cat a")["status"] == "ok"
    changes: dict[str, dict[str, Any]] = {"Write": {"file_path": "b", "content": "x"}, "Bash": {"command": "touch b"}}
    for tool, values in changes.items():
        assert place.call(tool, *plan, f"--allowedTools={tool}", **values)["status"] == "denied"
    assert [path.name for path in place.project.iterdir()] == ["a"]


@pytest.mark.proves("G26")
def test_bypassing_lifts_questions_but_no_rule_and_no_critical_path(place: Place) -> None:
    bypass = "--dangerously-skip-permissions"
    (place.project / ".git").mkdir()
    (place.home / "kept").write_text("x")

    assert place.call("Write", bypass, file_path=".git/config", content="x")["status"] == "ok"
    assert place.call("Bash", bypass, command="touch made")["status"] == "ok"
    refused = place.call("Bash", bypass, "--disallowedTools=Bash(touch *)", command="touch more")
    assert (refused["status"], ("deny rule", "deny") in layers(refused)) == ("denied", True)
    asked = place.call("Bash", bypass, "--settings", '{"permissions":{"ask":["Bash(touch *)"]}}', command="touch more")
    assert (asked["status"], asked["decision"]["reason"].endswith(NOBODY_ASKED)) == ("denied", True)
    assert place.call("Bash", bypass, command="rm -rf ~")["status"] == "denied"
    assert (place.home / "kept").exists()
    assert not (place.project / "more").exists()


@pytest.mark.proves("G1", "G37")
def test_hooks_speak_first_and_the_decision_says_who_thought_what(place: Place) -> None:
    hook = {"type": "command", "command": "echo 'not today' >&2; exit 2"}
    settings = json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})

    refused = place.call("Bash", "--settings", settings, "--allowedTools=Bash(touch *)", command="touch a")

    assert (refused["status"], refused["decision"]["verdict"]) == ("denied", "deny")
    assert "not today" in refused["decision"]["reason"]
    first, *others = layers(refused)
    assert first == ("hooks", "deny")
    assert ("allow rule", "allow") in others
    assert not (place.project / "a").exists()


@pytest.mark.proves("G33")
def test_every_decision_of_a_call_is_in_the_audit_log(place: Place) -> None:
    place.call("Read", file_path="missing")
    place.call("Bash", command="touch a")

    assert sorted((each["tool"], each["decision"]) for each in place.audited()) == [("Bash", "deny"), ("Read", "allow")]


def test_a_run_of_one_call_keeps_the_audit_folder_within_its_bounds(place: Place) -> None:
    folder = place.state / "audit"
    folder.mkdir(parents=True, mode=0o700)
    for number in range(1_050):
        file = folder / f"old-{number}.jsonl"
        file.write_text("{}\n")
        os.utime(file, (number, number))

    place.call("Read", file_path="missing")

    left = {path.name for path in folder.iterdir()}
    assert len(left) == 1_001
    assert not left & {f"old-{number}.jsonl" for number in range(50)}


@pytest.mark.proves("I1")
def test_the_output_of_a_command_is_bounded_by_what_is_set(place: Place) -> None:
    def shown(**env: str) -> int:
        [text] = place.call("Bash", command="seq 1000000 1005000", env=env)["content"]
        return len(text["text"])

    assert 10_000 < shown() <= 30_000
    assert shown(BASH_MAX_OUTPUT_LENGTH="600") < 600


@pytest.mark.parametrize(
    ("flags", "env"),
    [
        pytest.param(("--settings", '{"features": {"background": false}}'), {}, id="by settings"),
        pytest.param((), {"HANDRAIL_FEATURES": "-background"}, id="by a variable"),
    ],
)
def test_without_background_tasks_bash_starts_none(place: Place, flags: tuple[str, ...], env: dict[str, str]) -> None:
    allowed = "--allowedTools=Bash"

    refused = place.call("Bash", allowed, *flags, env=env, command="touch made", run_in_background=True)
    assert refused["cause"] == "refused_input"
    assert "switched off (the feature `background`)" in str(refused)
    assert place.call("Bash", allowed, *flags, env=env, command="true")["status"] == "ok"
    assert [*place.project.iterdir()] == []
    assert place.warnings == ""


def test_a_misspelt_family_of_tools_is_warned_about(place: Place) -> None:
    place.call("Bash", "--allowedTools=Bash", env={"HANDRAIL_FEATURES": "-backgroud"}, command="true")

    assert "HANDRAIL_FEATURES names 'backgroud'" in place.warnings
    assert "Known: agents, background, plan, questions, schedules, task-list, web" in place.warnings


def test_edit_and_write_read_the_file_first_and_say_so(place: Place) -> None:
    (place.project / "a.txt").write_text("one\ntwo\n")
    accept = ("--permission-mode", "acceptEdits")

    edited = place.call("Edit", *accept, file_path="a.txt", old_string="two", new_string="three")
    written = place.call("Write", *accept, file_path="a.txt", content="four\n")
    made = place.call("Write", *accept, file_path="b.txt", content="new\n")

    assert [each["status"] for each in (edited, written, made)] == ["ok", "ok", "ok"]
    assert (edited["read"]["tool"], edited["read"]["status"]) == ("Read", "ok")
    assert "read" not in made
    assert (place.project / "a.txt").read_text() == "four\n"
    assert sorted(entry["tool"] for entry in place.audited()) == ["Edit", "Read", "Read", "Write", "Write"]


def test_a_file_that_may_not_be_read_is_not_changed_by_a_call(place: Place) -> None:
    (place.project / "a.txt").write_text("one\n")

    refused = place.call(
        "Edit",
        "--allowedTools=Edit",
        "--disallowedTools=Read(a.txt)",
        file_path="a.txt",
        old_string="one",
        new_string="x",
    )

    assert (refused["tool"], refused["status"], refused["read"]["status"]) == ("Read", "denied", "denied")
    assert (place.project / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize(
    ("files", "code", "says"),
    [(128, 0, "hello\n"), (32, 1, "could not be started: too many files are open (`ulimit -n` shows the limit). Try")],
)
def test_a_low_limit_of_open_files_is_enough_or_named(tmp_path: Path, files: int, code: int, says: str) -> None:
    call = [sys.executable, "-m", "handrail", "call", "--allowedTools=Bash", "Bash", '{"command": "echo hello"}']
    limit = f'ulimit -n {files}; exec "$@"'

    ran = subprocess.run(
        ["/bin/sh", "-c", limit, "sh", *call],
        cwd=tmp_path,
        env={**os.environ, "HANDRAIL_STATE_DIR": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == code
    assert says in ran.stdout + ran.stderr
