"""`handrail doctor`, as a person runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.cli import doctor
from handrail.cli.doctor import Here, State, findings


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "handrail", "doctor", *arguments],
        cwd=cwd,
        env={**os.environ, "HOME": str(cwd / "home"), "HANDRAIL_STATE_DIR": str(cwd / "state"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def here(folder: Path, **changes: Any) -> Here:
    variables = {"PATH": os.environ["PATH"], "HANDRAIL_STATE_DIR": str(folder / "state")}
    return Here(**{"variables": variables, "cwd": folder, "home": folder / "home", **changes})


def problems(where: Here) -> list[tuple[str, str]]:
    return [(each.area, each.text) for each in findings(where) if each.state is State.PROBLEM]


def test_a_sound_machine_has_no_problems_and_exit_code_0(tmp_path: Path) -> None:
    done = run(cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n\nNo problems.\n")
    for area in ("system", "programs", "sandbox", "state"):
        assert f"\n{area}\n" in f"\n{done.stdout}"


def test_the_findings_can_be_read_by_programs(tmp_path: Path) -> None:
    answer = json.loads(run("--json", cwd=tmp_path).stdout)

    assert answer["ok"] is True
    assert {"area": "system", "name": "platform"}.items() <= answer["findings"][1].items()
    assert {each["state"] for each in answer["findings"]} <= {"ok", "off", "note"}


def test_a_missing_program_says_what_is_off_and_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)

    found = {each.name: each for each in doctor.programs(here(tmp_path))}

    assert found["rg"].state is State.OFF
    assert found["rg"].text.startswith("not installed, so this is off: fast search")
    assert found["rg"].text.endswith("Install the package ripgrep.")


def test_windows_and_other_versions_of_python_are_problems(tmp_path: Path) -> None:
    said = problems(here(tmp_path, system="Windows", version=(3, 10)))

    assert ("system", "Windows is not supported yet. Use Linux or macOS.") in said
    assert ("system", "3.10 is not supported. Use 3.11, 3.12 or 3.13.") in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "Write an object."),
        ('{"sandbox": {"filesystem": {"denyRead": "x"}}}', "sandbox.filesystem.denyRead is 'x'"),
    ],
)
def test_a_broken_settings_file_is_a_problem(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "settings.json").write_text(content)

    done = run(cwd=tmp_path)

    assert done.returncode == 1
    assert said in done.stdout
    assert done.stdout.endswith("1 problem.\n")


def test_a_good_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"sandbox": {"enabled": true}}')

    done = run(cwd=tmp_path)

    assert done.returncode == 0
    assert str(tmp_path / ".claude" / "settings.json") in done.stdout


def test_a_sandbox_that_is_wanted_and_does_not_work_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "best", lambda: None)
    monkeypatch.setattr(doctor, "tried", lambda: ())
    assert problems(here(tmp_path)) == []

    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "settings.json").write_text('{"sandbox": {"enabled": true}}')

    assert [area for area, _ in problems(here(tmp_path))] == ["sandbox"]


def test_a_state_folder_that_others_can_open_is_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    assert problems(here(tmp_path)) == []

    folder.chmod(0o755)
    assert problems(here(tmp_path)) == [("state", f"others can open it (mode 755). Run: chmod 700 {folder}")]

    folder.rmdir()
    folder.write_text("")
    assert [text.partition(".")[0] for _, text in problems(here(tmp_path))] == ["is not a folder"]
