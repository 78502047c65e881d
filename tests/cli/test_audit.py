"""`handrail audit`: what was decided, by rule, tool, session and time, and why."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.cli.audit_log import parse_since, read_log
from handrail.cli.main import run
from handrail.errors import HandrailError

RULES = {"permissions": {"allow": ["Bash(touch *)"], "deny": ["Bash(rm *)"]}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder in which four calls were made: allowed by a rule, denied by one, refused unasked, and read-only."""
    folder = tmp_path / "project"
    for name in ("project", "home/.handrail"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/.handrail/settings.json").write_text(json.dumps(RULES, indent=1))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(folder)
    for command in ("touch a", "rm a", "make all"):
        run(["call", "Bash", json.dumps({"command": command})])
    run(["call", "Read", '{"file_path": "a"}'])
    capsys.readouterr()
    return folder


def audit(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["audit", *arguments]) == 0
    return capsys.readouterr().out


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in audit(capsys, "--json", *arguments).splitlines()]


ALLOW_RULE = "user settings ~/.handrail/settings.json:4: Bash(touch *)"
DENY_RULE = "user settings ~/.handrail/settings.json:7: Bash(rm *)"


def test_a_call_that_a_hook_refused_is_listed_with_what_the_hook_said(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "command", "command": "echo not on Fridays >&2; exit 2"}
    hooks = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    (project.parent / "home/.handrail/settings.json").write_text(json.dumps(hooks))
    run(["call", "Bash", '{"command": "ls"}'])
    capsys.readouterr()

    assert "objects: not on Fridays" in audit(capsys).splitlines()[4]


@pytest.mark.usefixtures("project")
def test_every_decision_is_listed_with_the_rule_that_made_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert [(row["tool"], row["kind"], row["decision"], row["rule"]) for row in rows(capsys)] == [
        ("Bash", "allowed", "allow", ALLOW_RULE),
        ("Bash", "denied", "deny", DENY_RULE),
        ("Bash", "asked", "deny", ""),
        ("Read", "allowed", "allow", ""),
    ]
    lines = audit(capsys).splitlines()
    assert [line.split("  ")[1] for line in lines[:4]] == ["allowed", "denied", "asked: unanswered", "allowed"]
    assert f"Bash(rm a)  {DENY_RULE}" in lines[1]
    assert "4 calls in 4 sessions: 2 allowed, 1 asked (0 yes, 1 no or unanswered), 1 denied unasked." in lines


@pytest.mark.usefixtures("project")
def test_the_list_can_be_narrowed_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    denied, unanswered = rows(capsys, "--denied")

    assert [row["tool"] for row in rows(capsys, "--tool", "Read")] == ["Read"]
    assert rows(capsys, "--session", denied["session"]) == [denied]
    assert rows(capsys, "--asked") == [unanswered]
    assert rows(capsys, "--denied", "--asked") == [denied, unanswered]
    assert [row["kind"] for row in rows(capsys, "--allowed")] == ["allowed", "allowed"]
    assert rows(capsys, "--denied", "--limit", "1") == [unanswered]
    assert [row["rule"] for row in rows(capsys, "--rule", "touch")] == [ALLOW_RULE]
    assert rows(capsys, "--by", "tool") == [
        {"tool": "Bash", "allowed": 1, "asked": 1, "denied": 1},
        {"tool": "Read", "allowed": 1, "asked": 0, "denied": 0},
    ]
    assert audit(capsys, "--by", "rule").splitlines()[0].split() == ["allowed", "asked", "denied", "rule"]
    assert audit(capsys, "--limit", "1").splitlines()[1] == "... and 3 before these; --limit shows more."
    assert audit(capsys, "--tool", "Nothing") == "No recorded decision matches.\n"


@pytest.mark.usefixtures("project")
def test_why_tells_everything_about_one_call(capsys: pytest.CaptureFixture[str]) -> None:
    denied, _ = rows(capsys, "--denied")
    name = f"{denied['session']}/{denied['call']}"

    told = audit(capsys, "why", name)
    whole = json.loads(audit(capsys, "why", name, "--json"))

    assert told.startswith(f"denied: the rule Bash(rm *) matches\n  {DENY_RULE}\n")
    assert 'call     Bash {"command": "rm a"}' in told
    assert "deny rule  deny" in told
    assert """handrail permissions explain Bash '{"command": "rm a"}'""" in told
    assert (whole["session"], whole["opinions"][0]["says"]) == (denied["session"], "deny")
    assert run(["audit", "why", "call-1"]) == 0
    assert "4 calls have this id; this is the newest" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("why",), "say which call"),
        (("why", "unheard-of"), "no recorded call has the id 'unheard-of'"),
        (("--since", "never"), "'never' is not a time. Write 30m, 2h"),
    ],
)
@pytest.mark.usefixtures("project")
def test_what_cannot_be_answered_is_a_usage_error(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_time_is_a_span_a_day_or_a_moment() -> None:
    now = 1_000_000_000.0
    assert [now - parse_since(text, now) for text in ("30m", "2h", "3 d", "1w")] == [1800, 7200, 259200, 604800]
    assert parse_since("2001-09-09T01:46:40+00:00", now) == now
    assert 0 <= now - parse_since("today", now) < 86400
    assert parse_since("today", now) > parse_since("yesterday", now)
    with pytest.raises(HandrailError, match="is not a time"):
        parse_since("2 fortnights", now)


def test_only_what_was_decided_since_then_is_read_and_broken_lines_are_counted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project.parent / "state" / "audit"
    first, *_, last = sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    line = json.loads(first.read_text())
    first.write_text(json.dumps({**line, "at": 1_000.0, "tool": "Ba\x1b[2Jsh"}) + "\n")
    with last.open("a") as file:
        file.write('{"v": 1, "at"')  # its process died here

    assert read_log(folder).calls[0].at == 1_000.0
    assert "Ba\\x1b[2Jsh(touch a)" in audit(capsys)
    assert len(rows(capsys, "--since", "1h")) == 3
    capsys.readouterr()
    assert run(["audit"]) == 0
    assert f"1 line in {folder} could not be read" in capsys.readouterr().err

    first.write_text(json.dumps({**line, "v": 99}) + "\n")
    assert run(["audit"]) == 2
    assert "was written by a newer handrail" in capsys.readouterr().err
