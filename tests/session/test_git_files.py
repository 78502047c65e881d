"""What git's configuration names inside a working folder is protected like `.git`: hooks, includes, programs."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.processes.sandbox.choose import Method
from handrail.session.settings.git_files import _settings, git_files
from handrail.tools.outcome import Status
from tests.session.test_sandbox import World, confined_by
from tests.session.test_sandbox_plants import git

pytestmark = [pytest.mark.needs("bwrap")]

HOOK = "#!/bin/sh\ntouch {mark}\n"
CONFIG = '[core]\n\tfsmonitor = "touch {mark}; false"\n'
CASES = {
    "hooks that are there": (("core.hooksPath", ".githooks"), ".githooks/pre-commit", HOOK, True),
    "hooks to come": (("core.hooksPath", "tools/git hooks"), "tools/git hooks/post-checkout", HOOK, False),
    "hooks by a whole path": (("core.hooksPath", "{project}/dev/h"), "dev/h/pre-commit", HOOK, True),
    "an included file": (("include.path", "../.gitconfig"), ".gitconfig", CONFIG, True),
    "a file that is included at times": (("includeIf.onbranch:main.path", "../dev/x"), "dev/x", CONFIG, True),
    "a filter": (("filter.x.clean", "./dev/clean.sh %f"), "dev/clean.sh", f"{HOOK}cat\n", True),
    "a file monitor": (("core.fsmonitor", "dev/watch"), "dev/watch", HOOK, True),
}
CALLS = (("status",), ("commit", "--allow-empty", "-m", "x"), ("checkout", "-q", "-b", "other"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    git(made.project, "init", "-q")
    (made.project / "a").write_text("a")
    yield made
    for sandbox in made.closing:
        sandbox.close()


def configured(world: World, case: str) -> tuple[str, str]:
    """Configure the case; the file to write, and what runs if it is written."""
    (name, value), path, text, is_there = CASES[case]
    if is_there:
        file = world.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("" if text is CONFIG else "#!/bin/sh\ncat\n")
        file.chmod(0o755)
    (world.project / ".gitattributes").write_text("a filter=x\n")
    git(world.project, "config", name, value.format(project=world.project))
    git(world.project, "add", "a")
    return path, text.format(mark=world.root / "marker")


def look(world: World) -> None:
    """What the user types next."""
    (world.project / "a").write_text("b")
    for call in CALLS:
        git(world.project, *call, check=False)


@pytest.mark.anyio
@pytest.mark.proves("X20")
@pytest.mark.parametrize("method", [Method.BUBBLEWRAP, Method.LANDLOCK])
@pytest.mark.parametrize("case", CASES)
async def test_what_git_is_told_to_run_is_not_written_in_the_sandbox(
    case: str, method: Method, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    confined_by(method, monkeypatch)
    path, text = configured(world, case)
    (world.project / "evil").write_text(text)
    world.begin({"enabled": True})
    target = f"'{path}'"
    script = (
        f'mkdir -p "$(dirname {target})"; cat evil > {target}; chmod +x {target}; cp evil new; chmod +x new; '
        f'mv new {target}; top={target}; mv "${{top%%/*}}" moved; mkdir -p "$(dirname {target})"; cp evil {target}'
    )

    await world.bash(world.script(script))
    look(world)

    assert world.questions == []
    assert not (world.root / "marker").exists()


@pytest.mark.anyio
@pytest.mark.proves("X21")
@pytest.mark.parametrize("case", CASES)
async def test_what_git_is_told_to_run_is_asked_about_where_edits_are_not(case: str, world: World) -> None:
    path, text = configured(world, case)
    (world.project / "evil").write_text(text)
    world.begin({}, defaultMode="acceptEdits")

    outcomes = [
        await world.bash(f"cp evil '{path}'"),
        await world.bash(f"mkdir -p \"$(dirname '{path}')\" && cp evil '{path}'"),
        await world.bash(f"cat evil | tee '{path}'"),
    ]
    if not (world.project / path).exists():
        outcomes[0] = await world.use("Write", file_path=path, content=text)
    free = await world.use("Write", file_path="dev/other.txt", content="x")
    look(world)

    assert [outcome.status for outcome in outcomes] == [Status.DENIED] * 3
    assert free.status is Status.OK, free.result.text
    assert not (world.root / "marker").exists()


def test_only_what_lies_in_a_working_folder_counts_and_never_the_folder_itself(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (project / "packages" / "a").mkdir(parents=True)
    home.mkdir()
    git(project, "init", "-q")
    (home / ".gitconfig").write_text("[core]\n\thooksPath = .hooks-of-mine\n[include]\n\tpath = ~/more\n")
    for value in ("/dev/null", "..", ".", str(home), "packages"):
        git(project, "config", "--add", "core.hooksPath", value)
    git(project, "config", "branch.a.remote", "packages")

    whole, part = (git_files([str(folder)], str(home)) for folder in (project, project / "packages" / "a"))

    assert whole.places == (str(project / ".hooks-of-mine"), str(project / "packages"))
    assert (whole.missing, part.places, part.missing) == ((), (), ())


def test_the_configuration_of_a_worktree_is_that_of_its_repository(tmp_path: Path) -> None:
    project, worktree = tmp_path / "project", tmp_path / "tree"
    project.mkdir()
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "x")
    git(project, "worktree", "add", "-q", str(worktree))
    git(project, "config", "core.hooksPath", "hooks")

    assert git_files([str(worktree)], str(tmp_path)).places == (str(worktree / "hooks"),)


WORDS = st.text("abcXYZ09-./~ ", min_size=1, max_size=12).map(str.strip).filter(bool)
SECTIONS = st.sampled_from(("core", "include", "includeIf.gitdir:~/x/", "filter.a b", 'filter.q"q', "diff"))


@pytest.mark.proves("X20")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(SECTIONS, st.sampled_from(("hooksPath", "path", "clean")), WORDS), min_size=1, max_size=4))
def test_every_setting_that_git_reads_is_read(tmp_path: Path, given: list[tuple[str, str, str]]) -> None:
    file = tmp_path / "config"
    file.unlink(missing_ok=True)
    for section, key, value in given:
        git(tmp_path, "config", "--file", str(file), "--add", f"{section}.{key}", value)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    listed = subprocess.check_output(["git", "config", "--file", str(file), "--list", "-z"], env=env, text=True)

    names = {tuple(entry.split("\n", 1)) for entry in listed.split("\0") if entry}
    assert {(name.lower(), value) for name, value in names} <= {
        (name.replace('\\"', '"'), value) for name, value in _settings(file.read_text())
    }
