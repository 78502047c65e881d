"""What a repository, a folder or the search path could do to a command that only reads."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail.builtin.bash.preconditions import Preconditions
from handrail.shell import CommandVerdict, analyse
from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.needs("git")]

SCENARIOS = [json.loads(line) for line in Path(__file__).with_name("git_config_exec.jsonl").read_text().splitlines()]
HELPERS = {
    "core.fsmonitor": "git status",
    "diff.external": "git diff",
    "diff.x.command": "git diff",
    "diff.x.textconv": "git log -p -1",
    "filter.x.clean": "git diff",
    "filter.x.process": "git status",
    "core.pager": "git log",
    "pager.log": "git log",
    "gpg.program": "git log -1",
    "core.sshCommand": "git branch -a",
    "alias.status": "git status",
}


def git(session: Session, *words: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(session.home), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=session.project, env=env, check=True, capture_output=True)


def repository(session: Session, settings: dict[str, str], attributes: str = "*.txt diff=x filter=x merge=x") -> None:
    git(session, "init", "-q")
    git(session, "config", "user.name", "a")
    git(session, "config", "user.email", "a@b.example")
    (session.project / ".gitattributes").write_text(attributes + "\n")
    for text in ("1\n", "2\n"):
        (session.project / "f.txt").write_text(text)
        git(session, "add", ".")
        git(session, "commit", "-qm", "a change")
    (session.project / "f.txt").write_text("dirty\n")
    for name, value in settings.items():
        *before, last = name.split(";")
        for pair in before:
            git(session, "config", *pair.split("=", 1))
        git(session, "config", last, value)


def planted(session: Session, scripts: dict[str, str]) -> None:
    for name, body in scripts.items():
        path = session.project / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    hooks = session.project / ".evilhooks"
    hooks.mkdir()
    for name in ("post-index-change", "pre-commit", "post-checkout"):
        (hooks / name).write_text("#!/bin/sh\ntouch PWNED\n")
        (hooks / name).chmod(0o755)


@pytest.mark.proves("R2")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
async def test_the_configuration_of_a_repository_runs_nothing(session: Session, scenario: dict[str, Any]) -> None:
    setup, action = scenario["setup"], scenario["action"]
    repository(session, setup["git_config"], setup["attributes"])
    planted(session, setup["script"])
    outcome = await session.bash(action["command"], session.rules(action["mode"]))

    assert outcome.status in {Status.OK, Status.DENIED, Status.ERROR}
    assert not (session.project / "PWNED").exists()


@pytest.mark.proves("R2")
@pytest.mark.parametrize(("name", "command"), HELPERS.items())
async def test_no_helper_of_any_kind_runs_unasked(session: Session, name: str, command: str) -> None:
    repository(session, {name: "./evil.sh"})
    planted(session, {"evil.sh": "touch PWNED; cat"})
    await session.bash(command, session.rules())

    assert analyse(command).verdict is CommandVerdict.READ_ONLY
    assert not (session.project / "PWNED").exists()


async def test_in_an_ordinary_repository_git_runs_unasked(session: Session) -> None:
    repository(session, {}, "")
    commands = ("git status --short", "git log --oneline", "git diff", "git show", "git blame f.txt", "git branch")
    outcomes = [await session.bash(command, session.rules()) for command in commands]

    assert [outcome.status for outcome in outcomes] == [Status.OK] * len(commands)
    assert "f.txt" in outcomes[0].result.text


async def test_what_users_configure_for_themselves_is_their_will(session: Session) -> None:
    repository(session, {}, "")
    git(session, "config", "--global", "filter.lfs.clean", "cat")
    git(session, "config", "--global", "diff.x.textconv", "cat")

    assert (await session.bash("git diff", session.rules())).status is Status.OK


@pytest.mark.parametrize(
    ("name", "command", "says"),
    [
        ("diff.external", "git diff", "the repository's configuration sets diff.external, which runs a program"),
        ("filter.lfs.clean", "git status", "sets filter.lfs.clean"),
        ("diff.Pdf.textconv", "git log -p", "sets diff.Pdf.textconv"),
        ("alias.whatchanged", "git whatchanged", "sets alias.whatchanged"),
    ],
)
async def test_what_no_switch_can_keep_away_is_asked_about(
    session: Session, name: str, command: str, says: str
) -> None:
    repository(session, {name: "./evil.sh"}, "")
    outcome = await session.bash(command, session.rules())

    assert outcome.status is Status.DENIED
    assert says in outcome.result.text


async def test_an_included_file_counts_as_the_repositorys_own(session: Session) -> None:
    repository(session, {"include.path": "../.gitmore"}, "")
    (session.project / ".gitmore").write_text("[diff]\n\texternal = ./evil.sh\n")

    assert (await session.bash("git diff", session.rules())).status is Status.DENIED


async def test_a_repository_that_reaches_beyond_the_workspace_is_asked_about(session: Session) -> None:
    repository(session, {}, "")
    inner = session.project / "inner"
    inner.mkdir()
    narrow = replace(session.services, working_dirs=lambda: (str(inner),))

    assert await Preconditions(narrow)(analyse("git status"), str(inner)) == (
        "the top of the working tree lies outside the workspace",
    )
    assert await Preconditions(session.services)(analyse("git status"), str(inner)) == ()


async def test_outside_of_a_repository_there_is_nothing_to_fear(session: Session) -> None:
    assert await Preconditions(session.services)(analyse("git status"), str(session.project)) == ()


async def test_a_program_of_the_project_is_not_taken_for_the_real_one(tmp_path: Path) -> None:
    tools = tmp_path / "project" / "node_modules" / ".bin"
    tools.mkdir(parents=True)
    (tools / "ls").write_text("#!/bin/sh\ntouch PWNED\n")
    (tools / "ls").chmod(0o755)
    session = Session(tmp_path, {"PATH": f"{tools}:{os.environ['PATH']}"})
    outcome = await session.bash("ls", session.rules())

    assert outcome.status is Status.DENIED
    assert "ls is a program of the project itself" in outcome.result.text
    assert (await session.bash("pwd", session.rules())).status is Status.OK
    assert not (session.project / "PWNED").exists()


async def test_a_monitor_is_checked_like_a_command(session: Session) -> None:
    repository(session, {"diff.external": "./evil.sh"}, "")
    given = {"description": "changes", "command": "git diff"}

    assert (await session.use("Monitor", given, session.rules())).status is Status.DENIED


async def test_who_works_at_home_may_have_programs_there(tmp_path: Path) -> None:
    session = Session(tmp_path)
    tools = session.home / "bin"
    tools.mkdir()
    (tools / "ls").write_text("#!/bin/sh\n")
    (tools / "ls").chmod(0o755)
    at_home = replace(
        session.services, env={"PATH": f"{tools}:/usr/bin:/bin"}, working_dirs=lambda: (str(session.home),)
    )

    assert await Preconditions(at_home)(analyse("ls"), str(session.home)) == ()


@pytest.mark.parametrize(
    ("name", "command", "holds"),
    [
        ("plain.txt", "grep x *", True),
        ("-rf", "grep x *", False),
        ("a b", "find . -type f | xargs wc -l", False),
        ("plain.txt", "find . -type f | xargs wc -l", True),
        ("it's", "ls | xargs cat", False),
        ("--files0-from=/etc/x", "wc *=/etc/*", False),
        ("--files0-from=/etc/x", 'for f in */*/*; do wc "$f"; done', False),
        ("-f/x", "grep -v a */*", False),
        ("src/x", "wc */*", True),
    ],
)
async def test_file_names_that_could_be_something_else_are_looked_for(
    session: Session, name: str, command: str, holds: bool
) -> None:
    (session.project / name).parent.mkdir(parents=True, exist_ok=True)
    (session.project / name).touch()

    assert analyse(command).verdict is CommandVerdict.READ_ONLY
    assert (await Preconditions(session.services)(analyse(command), str(session.project)) == ()) is holds


@pytest.mark.parametrize("command", ["gh pr list", "kubectl get pods"])
async def test_what_would_use_the_users_credentials_is_asked_about(session: Session, command: str) -> None:
    analysis = analyse(command)

    assert analysis.verdict is CommandVerdict.READ_ONLY
    assert await Preconditions(session.services)(analysis, str(session.project))
