import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that the test may not look into, also when the tests are run by root."""
    base = Path(tempfile.mkdtemp())
    folder = base / "closed"
    folder.mkdir()
    (folder / "inside").write_text("secret")
    folder.chmod(0)
    root = os.geteuid() == 0
    if root:
        base.chmod(0o777)
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    folder.chmod(0o700)
    shutil.rmtree(base)
