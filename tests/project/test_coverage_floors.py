"""The floors of the deciding packages hold, for lines and branches together."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.forked import unmeasured

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "coverage_floors.py"


def summary(lines: int, covered_lines: int, branches: int, covered_branches: int) -> dict[str, dict[str, int]]:
    numbers = {"num_statements": lines, "covered_lines": covered_lines}
    return {"summary": {**numbers, "num_branches": branches, "covered_branches": covered_branches}}


@pytest.mark.parametrize(
    ("files", "status", "said"),
    [
        pytest.param({"tool.py": summary(90, 90, 10, 5)}, 0, "95.0 % (floor 95 %) ok", id="just enough"),
        pytest.param({"tool.py": summary(90, 90, 10, 4)}, 1, "94.0 % (floor 95 %) TOO LOW", id="a branch too few"),
        pytest.param({}, 1, "0.0 % (floor 95 %) TOO LOW", id="not measured at all"),
    ],
)
def test_a_package_below_its_floor_fails(
    tmp_path: Path, files: dict[str, dict[str, dict[str, int]]], status: int, said: str
) -> None:
    (tmp_path / "src" / "handrail" / "tools").mkdir(parents=True)
    report = {"files": {f"src/handrail/tools/{name}": file for name, file in files.items()}}
    (tmp_path / "coverage.json").write_text(json.dumps(report))

    done = subprocess.run(
        [sys.executable, SCRIPT, "coverage.json"],
        cwd=tmp_path,
        env=unmeasured(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (status, f"coverage of tools: {said}\n")
