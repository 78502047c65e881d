import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.sandbox.box import Box, method


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """A box that the best sandbox of this machine is around."""
    return Box(tmp_path)


@pytest.fixture
def users_box(monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    """A box of an ordinary user, whose commands are started as that user."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; the other tests have run as an ordinary one")
    root = Path(tempfile.mkdtemp())
    monkeypatch.setattr(sys, "base_prefix", "/usr")  # the one of the tests may lie where that user cannot look
    try:
        made = Box(root, method=method("bubblewrap"), unprivileged=True)
        (made.state / "session" / "tmp").mkdir(parents=True)
        root.chmod(0o755)
        for path in (root, *root.rglob("*")):
            os.chown(path, 1234, 1234)
        yield made
    finally:
        shutil.rmtree(root)
