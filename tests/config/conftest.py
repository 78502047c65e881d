"""What the tests of settings have in common."""

from pathlib import Path

import pytest

from tests.config.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
