"""Handrail starts itself in folders that are not trusted."""

import subprocess
from pathlib import Path

import pytest

from handrail.processes.own_command import OWN_COMMAND
from tests.forked import unmeasured


@pytest.mark.proves("R9")
def test_modules_of_the_folder_it_is_started_in_are_not_imported(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    (tmp_path / "handrail").mkdir()
    for module in ("handrail/__init__.py", "handrail/__main__.py", "argparse.py"):
        (tmp_path / module).write_text(f"open({str(marker)!r}, 'w')")

    done = subprocess.run(
        [*OWN_COMMAND, "shell", "ls"], cwd=tmp_path, env=unmeasured(), capture_output=True, check=True
    )

    assert done.stdout
    assert not marker.exists()
