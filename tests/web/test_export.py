"""`handrail sessions export --format html`: one run as a file that can be attached to a ticket."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from handrail.testing import say, use
from tests.forked import program, unmeasured
from tests.web.browser import browser, opened
from tests.web.runs import Answers, hostile_run, keep_run

TOKEN = "ghp_" + "k3" * 18
EDIT = {"file_path": "a.txt", "old_string": "two", "new_string": f"token={TOKEN}"}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def export(session: Path, to: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
    env = {**unmeasured(), "HANDRAIL_STATE_DIR": str(session.parents[2]), "HOME": str(to.parent)}
    command = [str(program()), "sessions", "export", session.stem, "--format", "html", "-o", str(to), *flags]
    return subprocess.run(command, env=env, cwd=to.parent, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.needs("chromium")
def test_an_exported_run_is_whole_loads_nothing_and_runs_nothing_of_its_content(
    chromium: Browser, tmp_path: Path
) -> None:
    session = hostile_run(tmp_path / "p")
    done = export(session, tmp_path / "run.html")
    assert (done.returncode, done.stderr) == (0, "")

    with opened(chromium, offline=True) as watched:
        page = watched.page
        page.goto((tmp_path / "run.html").as_uri())
        for name in ("Conversation", "Timeline", "Decisions", "Changes", "Cost and cache"):
            page.get_by_role("link", name=name).click()
            page.locator(f'section[aria-label="{name}"] :is(.vrow, .file)').first.wait_for()
            watched.unfold()
        assert "<script>window.hacked" in page.locator("main").inner_text()
        assert page.get_by_role("button", name="Undo from here").count() == 0
        assert (page.evaluate("window.hacked"), watched.complaints, len(watched.requests)) == (None, [], 1)


def test_secrets_do_not_leave_and_contents_need_not(tmp_path: Path) -> None:
    answers: Answers = [
        [use("r", "Read", file_path="a.txt"), use("e", "Edit", **EDIT), use("c", "echo", text="unheard-of")],
        [say(f"It is {TOKEN}.")],
    ]
    session = keep_run(tmp_path / "p", answers, "Private words.", deny=["Bash(touch *)"])
    shown, silent = tmp_path / "shown.html", tmp_path / "silent.html"

    assert export(session, shown).returncode == export(session, silent, "--no-contents").returncode == 0

    page, bare = shown.read_text(), silent.read_text()
    assert TOKEN not in page + bare
    assert all(word in page for word in ("Private words.", "unheard-of", "a.txt", "+token="))
    assert not any(word in bare for word in ("Private words.", "unheard-of", "a.txt", "+token=", str(tmp_path)))
    assert '"tool":"Edit"' in bare
    again = export(session, shown)
    assert (again.returncode, "exists" in again.stderr) == (1, True)
    refused = subprocess.run(
        [str(program()), "sessions", "export", session.stem, "--no-contents"],
        env={**unmeasured(), "HANDRAIL_STATE_DIR": str(session.parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (refused.returncode, "--format html" in refused.stderr) == (1, True)
