"""Async tests of this folder run on a clock that jumps: waiting costs nothing, and the order of events is exact."""

from typing import Any

import pytest

from handrail.testing import VirtualTimeLoop


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": VirtualTimeLoop}
