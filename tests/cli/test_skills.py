"""`handrail skills`: list, show, new and check, and how `permissions explain` judges a skill."""

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


def skill(folder: Path, name: str, head: str) -> None:
    (folder / ".claude/skills" / name).mkdir(parents=True)
    (folder / ".claude/skills" / name / "SKILL.md").write_text(f"---\n{head}\n---\nDo it with !`ls`.")


@pytest.mark.proves("N14")
def test_a_new_skill_is_listed_shown_and_without_fault(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["skills", "list"]) == 0
    assert "There are no skills here." in capsys.readouterr().out
    assert run(["skills", "new", "ship-it"]) == 0
    assert run(["skills", "new", "mine", "--user"]) == 0
    assert (folder / ".handrail/skills/ship-it/SKILL.md").is_file()
    assert run(["skills", "check"]) == 0
    capsys.readouterr()

    assert run(["skills", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["source"], row["trusted"]) for row in rows] == [
        ("mine", "user", True),
        ("ship-it", "project", True),
    ]
    assert run(["skills", "show", "ship-it"]) == 0
    assert "Say here what to do" in capsys.readouterr().out
    assert run(["skills", "new", "ship-it"]) == 2
    assert run(["skills", "new", "../x"]) == 2
    assert run(["skills", "show", "ship"]) == 2
    errors = capsys.readouterr().err
    assert "is there already" in errors
    assert "'../x' cannot be the name" in errors
    assert "Did you mean 'ship-it'?" in errors


@pytest.mark.proves("N14")
def test_what_a_skill_wants_is_shown_and_what_is_odd_about_it_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skill(folder, "wide", "description: d\nallowed-tools: Bash(ls *)\ncolour: red")
    assert run(["skills", "check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "skills": 1,
        "problems": [".claude/skills/wide/SKILL.md: no effect: colour"],
    }
    assert run(["skills", "show", "wide"]) == 0
    shown = capsys.readouterr().out
    assert 'runs: ["ls"] - not before this folder is trusted: handrail trust' in shown
    assert 'allowed-tools: ["Bash(ls *)"] - not before this folder is trusted' in shown

    run(["permissions", "explain", "Skill", json.dumps({"skill": "wide"})])
    assert capsys.readouterr().out.startswith("ask: the skill wide allows Bash(ls *)")
