"""The registry of promised behaviours and the marks in the tests agree."""

import subprocess
import sys
from pathlib import Path

from tests.forked import unmeasured

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = """
["A. Tools"]
A1 = { landed = true, text = "It works." }
A2 = { landed = false, text = "It will work." }
"""


def checklist(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts" / "checklist.py", *arguments]
    return subprocess.run(command, env=unmeasured(), capture_output=True, text=True, check=False)


def project(folder: Path, test: str) -> Path:
    (folder / "tests").mkdir()
    (folder / "checklist.toml").write_text(REGISTRY)
    (folder / "tests" / "test_it.py").write_text(f"import pytest\n\n{test}\ndef test_it(): ...\n")
    return folder


def test_every_landed_promise_has_a_test_and_no_test_names_an_unknown_one() -> None:
    done = checklist("--check")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_landed_promise_without_a_test_fails_the_check(tmp_path: Path) -> None:
    done = checklist("--check", "--root", project(tmp_path, "@pytest.mark.proves('A2')"))

    assert (done.returncode, done.stderr) == (1, "A1 has landed, but no test proves it: It works.\n")


def test_an_unknown_id_fails_the_check_with_its_place(tmp_path: Path) -> None:
    done = checklist("--check", "--root", project(tmp_path, "@pytest.mark.proves('A1', 'Z9')"))

    expected = "tests/test_it.py:3: 'Z9' is not in checklist.toml. Correct the id, or add it there.\n"
    assert (done.returncode, done.stderr) == (1, expected)


def test_an_id_that_is_computed_fails_the_check(tmp_path: Path) -> None:
    done = checklist("--check", "--root", project(tmp_path, "@pytest.mark.proves('A1', 'A' + '2')"))

    assert done.returncode == 1
    assert "plain strings" in done.stderr


def test_the_overview_counts_each_section(tmp_path: Path) -> None:
    done = checklist("--root", project(tmp_path, "@pytest.mark.proves('A1')"))

    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "A. Tools",
        "  proven         1  A1",
        "  not landed     1  A2",
        "2 promised, 1 landed, 1 of these proven",
    ]
