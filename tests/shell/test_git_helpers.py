"""
Programs that a repository's configuration makes git run in read-only forms, and the switches that keep them away.

A real repository with a hostile configuration: every helper leaves a mark. Each command runs as it is written, and
with the switches that the analysis names; the marks say which helpers ran.
"""

import os
import subprocess
from pathlib import Path

import pytest

from handrail.shell import CommandVerdict, analyse

pytestmark = pytest.mark.needs("git")

SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----\n"


class Hostile:
    """A repository whose helpers append their name to `marks`, which lies outside of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.outside = folder / "repo", folder / "outside"
        self.marks = self.outside / "marks"
        self.touched = 0
        self.folder.mkdir()
        self.outside.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@b.example")

    def helper(self, name: str, body: str = "exit 0") -> str:
        path = self.outside / name
        path.write_text(f"#!/bin/sh\necho {name} >> '{self.marks}'\n{body}\n")
        path.chmod(0o755)
        return str(path)

    def git(self, *words: str, stdin: str = "", terminal: bool = False, cwd: Path | None = None) -> str:
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.outside), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
        primary, secondary = os.openpty() if terminal else (-1, -1)
        done = subprocess.run(
            ["git", *words],
            cwd=cwd or self.folder,
            env={**env, "TERM": "dumb"},
            input=stdin.encode(),
            stdout=secondary if terminal else subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=20,
            check=False,
        )
        if terminal:
            os.close(primary)
            os.close(secondary)
        return (done.stdout or b"").decode(errors="replace").strip()

    def commit(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)
        self.git("add", ".")
        self.git("commit", "-qm", "a change")

    def ran(self, *words: str, terminal: bool = False, cwd: Path | None = None) -> set[str]:
        """The helpers that a command ran; files look touched, so that git compares contents."""
        self.marks.unlink(missing_ok=True)
        self.touched += 1
        for path in self.folder.iterdir():
            if path.is_file():
                os.utime(path, (self.touched, self.touched))
        self.git(*words, terminal=terminal, cwd=cwd)
        return set(self.marks.read_text().split()) if self.marks.exists() else set()


def switched(line: str) -> tuple[str, ...]:
    """The words of a command with every switch the analysis names."""
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons
    before = [word for need in analysis.requires if not need.after_subcommand for word in need.switches]
    after = [word for need in analysis.requires if need.after_subcommand for word in need.switches]
    _, subcommand, *rest = line.split()
    inner = 1 if subcommand == "stash" else 0
    return (*before, subcommand, *rest[:inner], *after, *rest[inner:])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    repo = Hostile(tmp_path_factory.mktemp("hostile"))
    repo.commit(**{".gitattributes": "*.txt diff=evil\n*.bin diff=cmd\n*.flt filter=evil\n", "a.txt": "1\n"})
    repo.commit(**{"a.txt": "2\n", "b.bin": "1\n", "c.flt": "1\n"})
    repo.git("tag", "-am", "one", "v1")
    commit = repo.git("cat-file", "commit", "HEAD")
    head, _, message = commit.partition("\n\n")
    signed = repo.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=f"{head}\n{SIGNATURE}\n{message}\n")
    repo.git("update-ref", "HEAD", signed)
    (repo.folder / "a.txt").write_text("3\n")
    repo.git("stash")
    for name in ("a.txt", "b.bin", "c.flt"):
        (repo.folder / name).write_text("4\n")
    hook = repo.folder / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(Path(repo.helper("hook")).read_text())
    hook.chmod(0o755)
    for setting, value in {
        "core.fsmonitor": repo.helper("fsmonitor"),
        "core.pager": repo.helper("pager", "cat"),
        "diff.evil.textconv": repo.helper("textconv", 'cat "$1"'),
        "diff.cmd.command": repo.helper("command"),
        "diff.external": repo.helper("external"),
        "filter.evil.clean": repo.helper("clean", "cat"),
        "gpg.program": repo.helper("gpg"),
        "log.showSignature": "true",
    }.items():
        repo.git("config", setting, value)
    return repo


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("git status", {"fsmonitor", "hook", "clean"}),
        ("git diff", {"fsmonitor", "clean", "command", "external"}),
        ("git diff HEAD~1 HEAD", {"command", "external"}),
        ("git diff-index -p HEAD", {"fsmonitor", "clean"}),
        ("git diff-files -p", {"fsmonitor", "clean"}),
        ("git diff-tree -p HEAD~1 HEAD", {"fsmonitor"}),
        ("git log", {"gpg"}),
        ("git log -p", {"gpg", "textconv"}),
        ("git show", {"gpg", "textconv"}),
        ("git show v1", {"textconv"}),
        ("git whatchanged -p", {"gpg", "textconv"}),
        ("git blame a.txt", {"fsmonitor", "textconv"}),
        ("git annotate a.txt", {"fsmonitor", "textconv"}),
        ("git describe --all --dirty", {"fsmonitor", "hook", "clean"}),
        ("git grep 4", {"fsmonitor"}),
        ("git ls-files -m", {"fsmonitor", "clean"}),
        ("git check-ignore -v a.txt", {"fsmonitor"}),
        ("git check-attr -a a.txt", {"fsmonitor"}),
        ("git fsck", {"fsmonitor"}),
        ("git submodule status", {"fsmonitor"}),
        ("git hash-object c.flt", {"clean"}),
        ("git range-diff HEAD~1..HEAD HEAD~1..HEAD", {"gpg", "textconv"}),
        ("git status -vv", {"textconv"}),
    ],
)
def test_the_named_switches_keep_helpers_away(hostile: Hostile, line: str, runs: set[str]) -> None:
    assert hostile.ran(*line.split()[1:]) >= runs

    left = hostile.ran(*switched(line))
    checks = {need.name for need in analyse(line).requires if not need.switches}
    may_run = ({"clean"} if "git-filters" in checks else set()) | (
        {"textconv"} if "git-textconv-check" in checks else set()
    )
    assert left <= may_run


@pytest.mark.parametrize(
    "line",
    [
        "git rev-parse HEAD", "git rev-list --pretty HEAD", "git ls-tree -r HEAD", "git cat-file -p HEAD",
        "git cat-file -p HEAD:a.txt", "git show-ref", "git for-each-ref", "git branch -vv", "git tag -n",
        "git name-rev HEAD", "git merge-base HEAD HEAD~1", "git cherry HEAD HEAD~1", "git shortlog HEAD",
        "git worktree list", "git notes list", "git config -l", "git count-objects", "git var -l", "git remote -v",
        "git show-branch", "git symbolic-ref HEAD", "git check-mailmap a", "git version",
        "git stash show -p", "git sparse-checkout list",
    ],
)  # fmt: skip
def test_commands_that_name_no_helper_run_none(hostile: Hostile, line: str) -> None:
    assert hostile.ran(*line.split()[1:]) == set()


@pytest.mark.parametrize("line", ["git log", "git diff", "git branch", "git tag", "git config -l"])
def test_a_pager_stays_away_even_on_a_terminal(hostile: Hostile, line: str) -> None:
    assert "pager" in hostile.ran(*line.split()[1:], terminal=True)
    assert "pager" not in hostile.ran(*switched(line), terminal=True)


@pytest.mark.parametrize("line", ["git show", "git log -p", "git diff HEAD~1 HEAD", "git rev-list --objects --all"])
def test_a_missing_object_is_not_fetched(tmp_path: Path, line: str) -> None:
    repo = Hostile(tmp_path)
    repo.commit(a="1\n")
    repo.commit(a="2\n")
    blob = repo.git("rev-parse", "HEAD:a")
    (repo.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for setting, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "x",
        "remote.x.promisor": "true",
        "remote.x.url": "ssh://nowhere.example/x",
        "protocol.ssh.allow": "always",
        "core.sshCommand": repo.helper("ssh", "exit 1"),
    }.items():
        repo.git("config", setting, value)

    assert repo.ran(*line.split()[1:]) == {"ssh"}
    assert repo.ran(*switched(line)) == set()


@pytest.mark.parametrize(
    ("line", "setting", "value"),
    [
        ("git diff", "diff.submodule", "diff"),
        ("git show", "diff.submodule", "diff"),
        ("git log -p", "diff.submodule", "diff"),
        ("git status", "status.submoduleSummary", "true"),
    ],
)
def test_what_changed_inside_a_submodule_is_not_asked_for(tmp_path: Path, line: str, setting: str, value: str) -> None:
    repo = Hostile(tmp_path)
    inner = repo.folder / "sub"
    inner.mkdir()
    for words in ("init -q", "config user.name a", "config user.email a@b.example"):
        repo.git(*words.split(), cwd=inner)
    for text in ("1\n", "2\n", "3\n"):
        (inner / "a").write_text(text)
        repo.git("add", ".", cwd=inner)
        repo.git("commit", "-qm", "inside", cwd=inner)
        if text != "3\n":
            repo.commit(**{".gitmodules": '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n'})
    repo.git("config", "diff.external", repo.helper("inside"), cwd=inner)
    repo.git("config", setting, value)

    def seen(*words: str) -> bool:
        return bool(repo.ran(*words)) or "inside" in repo.git(*words)

    assert seen(*line.split()[1:])
    assert not seen(*switched(line))


def test_a_merge_driver_does_not_run_for_a_log(tmp_path: Path) -> None:
    repo = Hostile(tmp_path)
    repo.commit(**{"a": "1\n", ".gitattributes": "a merge=evil\n"})
    repo.git("checkout", "-qb", "side")
    repo.commit(a="2\n")
    repo.git("checkout", "-q", "main")
    repo.commit(a="3\n")
    repo.git("merge", "-q", "-s", "ours", "-m", "merged", "side")
    repo.git("config", "merge.evil.driver", repo.helper("driver"))
    repo.git("config", "log.diffMerges", "remerge")

    assert repo.ran("log", "-m", "-p") == {"driver"}
    assert repo.ran(*switched("git log -m -p")) == set()


@pytest.mark.parametrize("line", ["git diff", "git status", "git describe --all --dirty"])
def test_a_hook_does_not_run_because_a_file_looks_touched(tmp_path: Path, line: str) -> None:
    repo = Hostile(tmp_path)
    repo.commit(a="1\n", b="2\n")
    hook = repo.folder / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(Path(repo.helper("hook")).read_text())
    hook.chmod(0o755)

    assert repo.ran(*line.split()[1:]) == {"hook"}
    assert repo.ran(*switched(line)) == set()


def test_a_planted_bare_repository_is_not_used(tmp_path: Path) -> None:
    repo = Hostile(tmp_path)
    planted = repo.folder / "docs"
    repo.git("init", "-q", "--bare", str(planted))
    config = planted / "config"
    text = config.read_text().replace("bare = true", "bare = false")
    config.write_text(f"{text}\tworktree = ..\n\tfsmonitor = {repo.helper('fsmonitor')}\n")

    assert repo.ran("status", cwd=planted) >= {"fsmonitor"}
    assert repo.ran("-c", "safe.bareRepository=explicit", "status", cwd=planted) == set()
    assert repo.ran(*switched("git status"), cwd=planted) == set()


def test_an_alias_does_not_take_the_place_of_a_built_in(tmp_path: Path) -> None:
    repo = Hostile(tmp_path)
    repo.commit(a="1\n")
    evil = repo.helper("alias")
    listed = ["status", "log", "diff", "show", "branch", "tag", "remote", "config", "grep", "blame", "describe"]
    for name in listed:
        repo.git("config", f"alias.{name}", f"!{evil}")

    assert [name for name in listed if repo.ran(name)] == []
