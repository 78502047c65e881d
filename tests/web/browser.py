"""A real browser, and `handrail view` for it. One browser for all tests of a module."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, sync_playwright

from tests.forked import program, unmeasured

CHROMIUM = "/usr/bin/chromium"
NO_NETWORK = "--host-resolver-rules=MAP evil.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
QUIET = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-gpu", NO_NETWORK)
PATIENCE = 20_000
EMPTY = "section details[open]:not(:has(> :nth-child(2)))"


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser. It ends with the module that uses it: while it runs, this thread has a running event loop."""
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        try:
            yield started
        finally:
            started.close()


class Watched:
    """A page with everything that it complains about."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def unfold(self) -> None:
        """Open everything that is folded, and wait until it is drawn."""
        self.page.evaluate("for (const each of document.querySelectorAll('section details')) each.open = true")
        self.page.locator(EMPTY).first.wait_for(state="detached")

    def _hear(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.complaints.append(said.text)

    def _dismiss(self, dialog: Dialog) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()


@contextmanager
def opened(chromium: Browser, **options: Any) -> Iterator[Watched]:
    """A page in a context of its own: no cookies, nothing stored."""
    context = chromium.new_context(**options)
    try:
        yield Watched(context)
    finally:
        context.close()


@contextmanager
def view(state: Path, *arguments: str) -> Iterator[str]:
    """The address of `handrail view` while the block runs."""
    env = {**unmeasured(), "HANDRAIL_STATE_DIR": str(state), "HOME": str(state)}
    command = [str(program()), "view", "--json", *arguments]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, cwd=state) as running:
        try:
            assert running.stdout is not None
            yield json.loads(running.stdout.readline())["addresses"][0]["url"]
        finally:
            running.terminate()
            assert running.wait(20) == 0
