"""Async tests run on asyncio."""

from collections.abc import AsyncIterator

import pytest

from tests.providers.asking import OPENED


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def close_connections(anyio_backend: str) -> AsyncIterator[None]:
    """Closes what `asking` opened."""
    yield
    while OPENED:
        await OPENED.pop().aclose()
