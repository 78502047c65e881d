"""What reads in folders below runs nothing of theirs: no other repository's programs, no modules, no pager settings."""

import os
import subprocess
from pathlib import Path

import pytest

from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.needs("git"), pytest.mark.proves("X24")]


@pytest.fixture
def marker(session: Session) -> Path:
    """A project with a folder, a repository and modules in it that leave this file behind if they run."""
    project, marker = session.project, session.home / "marker"
    for name in ("src/deep", "nested/inner", "modules", "bare"):
        (project / name).mkdir(parents=True)
    for link, target in (("src/link", "../nested/inner"), ("nested/back", "../src"), ("into", "nested")):
        (project / link).symlink_to(target)
    (project / "data.json").write_text("{}\n")
    (project / "modules/json.py").write_text(f"open({str(marker)!r}, 'w')\n")
    hook = project / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    for folder, words in (("", ()), ("nested", ()), ("bare", ("--bare",))):
        git(session, folder, "init", "-q", *words)
    for folder in ("nested", "bare"):
        git(session, folder, "config", "core.fsmonitor", str(hook))
    return marker


def git(session: Session, folder: str, *words: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(session.home), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=session.project / folder, env=env, check=True, timeout=60)


@pytest.mark.parametrize(
    "line",
    [
        "cd src && git status",
        "git -C src/deep status",
        "(cd src/deep; git status)",
        "cd src/link/.. && git status",
        "python3 -m json.tool data.json",
        "cd src && python3 -m json.tool ../data.json",
        "less data.json",
        "ls | tee /dev/null",
        "cat /etc/os-release",
        "ls /etc",
    ],
)
async def test_reading_below_runs_unasked(session: Session, marker: Path, line: str) -> None:
    outcome = await session.bash(line, session.rules())

    assert outcome.status is Status.OK
    assert not marker.exists()


@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
@pytest.mark.parametrize(
    "line",
    [
        "cd nested && git status",
        "git -C into status",
        "cd nested/back/.. && git status",
        "cd nested/back && cd .. && git status",
        "git -C src/link/.. status",
        "cd src/link && git -C .. status",
        "cd src/link && env -C .. git status",
        "cd bare && git status",
        "CDPATH=nested cd inner && git status",
        "CDPATH=nested; cd inner && git status",
        "for d in src nested; do git -C $d status; done",
        "cd modules && python3 -m json.tool ../data.json",
        "env -C modules python3 -m json.tool ../data.json",
        "PYTHONPATH=modules python3 -m json.tool data.json",
        "cp modules/json.py src/json.py; cd src; python3 -m json.tool ../data.json",
        "LESSOPEN='|./hook' less data.json",
        "LESSOPEN='|./hook'; export LESSOPEN; less data.json",
        "less '+!./hook' data.json",
    ],
)
async def test_what_could_run_something_there_is_asked_about(
    session: Session, marker: Path, line: str, mode: str
) -> None:
    outcome = await session.bash(line, session.rules(mode))

    assert outcome.status is Status.DENIED
    assert not marker.exists()
