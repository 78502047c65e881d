import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from handrail.conversation.blocks import ToolUse
from handrail.tools.abort import AbortSignal
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Decision, Verdict

settings.register_profile("handrail", deadline=None)  # a busy machine is no bug
settings.load_profile("handrail")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> RunContext:
    return RunContext(cwd=tmp_path_factory.mktemp("cwd"))


@pytest.fixture
def ctx(run: RunContext) -> ToolContext:
    async def refuse(use: ToolUse, run: RunContext) -> Decision:
        return Decision(Verdict.DENY, f"{use.name} may not be used by a test")

    return ToolContext(run, ToolUse("call-1", "Any", {}), AbortSignal(), lambda progress: None, refuse)


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
