from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handrail.builtin.support.background_tasks import close_tasks
from tests.builtin.bash.session import Session


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    made = Session(tmp_path)
    yield made
    await close_tasks(made.services)
