import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail.builtin.services import ToolServices
from handrail.session.services import default_services
from handrail.tools.context import ToolContext
from handrail.tools.hidden_files import HiddenFiles


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


def made(cwd: Path, **env: str) -> ToolServices:
    state = str(cwd.with_name(f"{cwd.name}-state"))
    return default_services(
        {"PATH": os.environ["PATH"], "HOME": str(cwd / "home"), "HANDRAIL_STATE_DIR": state, **env}, cwd
    )


def hiding(is_hidden: Callable[[str], bool]) -> Callable[[], HiddenFiles]:
    """What services hide, told by the whole path."""
    hidden = HiddenFiles(lambda folder, name: is_hidden(f"{folder}/{name}"), lambda _: True, lambda _: True)
    return lambda: hidden


@pytest.fixture
def services(ctx: ToolContext) -> ToolServices:
    """What tools get."""
    return made(ctx.cwd)
