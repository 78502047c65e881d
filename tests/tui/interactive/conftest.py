"""What the tests of conversations on a terminal have in common."""

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "check").write_text("#!/bin/sh\ntouch ran\necho 3 passed\n")
    (folder / "check").chmod(0o755)
    return folder
