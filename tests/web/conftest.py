"""A browser for the asynchronous tests of a module; those that are not make their own, see browser.py."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

from tests.web.browser import CHROMIUM, QUIET


@pytest.fixture(scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as driver:
        started = await driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield started
        await started.close()
