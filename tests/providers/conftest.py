"""Connections that tests of providers leave open are closed after them."""

from collections.abc import AsyncIterator

import pytest

from tests.providers.asking import OPENED


@pytest.fixture
async def close_connections(anyio_backend: str) -> AsyncIterator[None]:
    """Closes what `asking` opened."""
    yield
    while OPENED:
        await OPENED.pop().aclose()
