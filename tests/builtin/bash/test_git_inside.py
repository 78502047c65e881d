"""Repositories inside a repository: git enters them, and what they configure must not run unasked."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.bash.preconditions import Preconditions
from handrail.shell import analyse
from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.needs("git")]

MARK = "PWNED"
HELPERS = {
    "core.fsmonitor": "[core]\n\tfsmonitor = {evil}\n",
    "filter": '[filter "x"]\n\tclean = {evil}\n',
    "process filter": '[filter "x"]\n\tprocess = {evil}\n\trequired = true\n',
    "diff.external": "[diff]\n\texternal = {evil}\n",
    "textconv": '[diff "x"]\n\ttextconv = {evil}\n',
    "diff command": '[diff "x"]\n\tcommand = {evil}\n',
    "hooks path": "[core]\n\thooksPath = {folder}\n",
    "included": "[include]\n\tpath = {more}\n",
}
COMMANDS = [
    "git status", "git status --short", "git diff", "git diff --stat", "git diff HEAD", "git describe --always --dirty",
    "git diff-files", "git diff-index HEAD", "git submodule status", "git submodule status --recursive",
    "git submodule", "git ls-files -m", "git ls-files --recurse-submodules", "git grep --recurse-submodules x",
    "git status -v -v", "git log -p", "git show", "git stash list", "git grep x",
]  # fmt: skip
ENTERING = [
    "git status",
    "git diff",
    "git diff HEAD",
    "git describe --always --dirty",
    "git submodule status --recursive",
]


def git(folder: Path, *words: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *words], cwd=folder, env=env, check=True, capture_output=True)


def init(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitattributes").write_text("*.txt diff=x filter=x\n")
    (folder / "f.txt").write_text("1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A project with a repository that its index links to, one inside that, a submodule, and one that it knows not."""
    with tempfile.TemporaryDirectory() as folder:
        library = init(Path(folder, "library"))
        project = init(Path(folder, "project"))
        for name in ("linked/deep", "linked", "unknown"):
            init(project / name)
        git(project, "submodule", "--quiet", "add", str(library), "sub")
        git(project, "add", "linked")
        git(project, "commit", "-qm", "two")
        yield project


class Nested:
    """A copy of the template, in which every file looks changed."""

    def __init__(self, template: Path, base: Path) -> None:
        shutil.copytree(template, base / "project", symlinks=True)
        self.session = Session(base)
        self.project = self.session.project
        for path in self.project.rglob("f.txt"):
            path.write_text("2\n")
        self.evil = base / "evil.sh"
        self.evil.write_text(f"#!/bin/sh\ntouch '{base / MARK}'\ncat\n")
        self.evil.chmod(0o755)
        self.mark = base / MARK

    def metadata(self, inside: str) -> Path:
        folder = self.project / inside
        return self.project / ".git" / "modules" / "sub" if inside == "sub" else folder / ".git"

    def configure(self, inside: str, helper: str) -> None:
        more = self.evil.with_name("more")
        more.write_text(HELPERS["core.fsmonitor"].format(evil=self.evil))
        hooks = self.evil.with_name("hooks")
        hooks.mkdir(exist_ok=True)
        shutil.copy(self.evil, hooks / "post-index-change")
        with (self.metadata(inside) / "config").open("a") as config:
            config.write(HELPERS[helper].format(evil=self.evil, folder=hooks, more=more))

    def runs_without_us(self, command: str) -> bool:
        """Whether git itself runs the helper."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.session.home)}
        words = ["bash", "-c", command]
        subprocess.run(words, cwd=self.project, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        found = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return found


@pytest.fixture
def nested(template: Path, tmp_path: Path) -> Nested:
    return Nested(template, tmp_path)


@pytest.mark.proves("X13", "R2")
@pytest.mark.parametrize("inside", ["linked", "linked/deep", "sub"])
@pytest.mark.parametrize("helper", ["core.fsmonitor", "filter"])
async def test_what_a_repository_inside_configures_does_not_run(nested: Nested, inside: str, helper: str) -> None:
    nested.configure(inside, helper)

    for command in ENTERING:
        outcome = await nested.session.bash(command, nested.session.rules())
        assert outcome.status is Status.DENIED, command
        assert "which git enters" in outcome.result.text
        assert not nested.mark.exists(), command
    assert nested.runs_without_us("git status")


@pytest.mark.proves("X13")
@given(
    st.sampled_from(["", "linked", "linked/deep", "sub", "unknown"]),
    st.sampled_from(list(HELPERS)),
    st.sampled_from(COMMANDS),
)
async def test_no_helper_in_any_repository_runs_unasked(template: Path, inside: str, helper: str, command: str) -> None:
    with tempfile.TemporaryDirectory() as base:
        nested = Nested(template, Path(base))
        nested.configure(inside, helper)

        await nested.session.bash(command, nested.session.rules())

        assert not nested.mark.exists()


@pytest.mark.proves("X13")
@pytest.mark.parametrize("command", COMMANDS)
async def test_ordinary_repositories_inside_are_entered_unasked(nested: Nested, command: str) -> None:
    outcome = await nested.session.bash(command, nested.session.rules())

    assert outcome.status is not Status.DENIED, outcome.result.text


@pytest.mark.proves("X13")
@pytest.mark.parametrize("way", ["file", "link", "inner link", "alternate", "include", "inner file"])
async def test_metadata_that_leads_elsewhere_is_asked_about(nested: Nested, tmp_path: Path, way: str) -> None:
    ours, theirs = nested.project / ".git", tmp_path / "elsewhere"
    if way in ("file", "link"):
        ours.rename(theirs)
        ours.write_text(f"gitdir: {theirs}\n") if way == "file" else ours.symlink_to(theirs)
    elif way == "inner link":
        (ours / "config").rename(theirs)
        (ours / "config").symlink_to(theirs)
    elif way == "alternate":
        shutil.copytree(ours / "objects", theirs)
        (ours / "objects" / "info").mkdir(exist_ok=True)
        (ours / "objects" / "info" / "alternates").write_text(f"{theirs}\n")
    elif way == "include":
        with (ours / "config").open("a") as config:
            config.write("[include]\n\tpath = ../common.gitconfig\n")
    else:
        (nested.project / "linked" / ".git").rename(theirs)
        (nested.project / "linked" / ".git").write_text(f"gitdir: {theirs}\n")

    outcome = await nested.session.bash("git status", nested.session.rules())

    assert outcome.status is Status.DENIED
    assert "outside the workspace" in outcome.result.text or "includes" in outcome.result.text


@pytest.mark.proves("X13")
async def test_a_registered_worktree_and_a_submodule_are_worked_in_alone(template: Path, tmp_path: Path) -> None:
    main = tmp_path / "main"
    shutil.copytree(template, main, symlinks=True)
    (tmp_path / "tree").mkdir()
    (tmp_path / "module").mkdir()
    worktree, module = Session(tmp_path / "tree"), Session(tmp_path / "module")
    worktree.project.rmdir()
    git(main, "worktree", "add", "-q", str(worktree.project))
    narrow = replace(module.services, working_dirs=lambda: (str(main / "sub"),))

    assert (await worktree.bash("git status", worktree.rules())).status is Status.OK
    assert await Preconditions(narrow)(analyse("git status"), str(main / "sub")) == ()
