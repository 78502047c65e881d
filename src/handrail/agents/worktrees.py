"""
Git worktrees for agents that work apart: from the caller's HEAD, removed when unchanged, kept and named when not.

The caller's HEAD, index and files are never touched. What is uncommitted there is offered as a patch, made with a copy
of the index. Nothing that the repository configures is run: no hooks, no file monitor, no filters.
"""

import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from handrail.errors import ToolError
from handrail.files.private_folder import make_private_folder
from handrail.files.search_path import find_program, path_outside
from handrail.records import record

FOLDER = Path(".handrail", "worktrees")
HOME = threading.Lock()
"""Held by those who make or remove worktrees, or the folder for them: agents begin and end at the same time."""
SAFE = (
    "--no-optional-locks",
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.sshCommand=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "diff.autoRefreshIndex=false"),
    *("-c", "advice.detachedHead=false"),
    *("-c", "submodule.recurse=false"),
)
RUNS_PROGRAMS = r"^(filter\..*\.(clean|smudge|process)|include\.path|includeif\..*\.path|diff\..*\.(command|textconv))$"
OF_REPOSITORY = ("local", "worktree")
"""The scopes of settings that come with a repository; those of the user are trusted."""
SECONDS = 120.0
MAX_UNTRACKED = 10_000_000
"""Bytes of files that git does not know yet that a patch holds at the most."""
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME")


@record
class Worktree:
    """A worktree: where it is, on which branch, from which commit, and where the agent works in it."""

    repository: str
    path: str
    branch: str
    base: str
    cwd: str
    patch: str = ""

    def as_json(self) -> str:
        """The text from which `from_json` makes it again."""
        return json.dumps({name: getattr(self, name) for name in Worktree.__annotations__})

    @classmethod
    def from_json(cls, text: str) -> "Worktree":
        """The worktree that `as_json` described."""
        return cls(**json.loads(text))

    def note_for_agent(self) -> str:
        """What the agent has to know of the place where it works."""
        where = f"{self.path}, on the branch {self.branch} from the commit {self.base[:12]}"
        text = f"You work in a git worktree of your own: {where}. Stay in it."
        if not self.base:  # a hook made it
            return f"You work in a folder of your own: {self.path}. Stay in it."
        if not self.patch:
            return text
        return f"{text}\nYour caller has changes that are not committed. If you need them: git apply {self.patch}"


def add_worktree(
    cwd: Path,
    project: Path,
    name: str,
    state: Path,
    env: Mapping[str, str],
    *,
    is_hidden: Callable[[str], bool] = lambda _path: False,
    before: Callable[[Worktree], None] = lambda _worktree: None,
) -> Worktree:
    """
    Make a worktree from the HEAD of the repository around `cwd`, below the project's folder if that is inside it.

    The files that `is_hidden` names, which no agent may read, are left out of the patch. `before` is called with what
    will be made.

    Raises:
        ToolError: there is no repository, no commit, or git refuses.
    """
    git = Git(env, (cwd, project))
    top = Path(git.text(cwd, "rev-parse", "--show-toplevel", problem="this folder is in no git repository"))
    base = git.text(
        top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", problem="the repository has no commit yet"
    )
    folder = ("rev-parse", "--absolute-git-dir")
    if git.try_text(top, *folder) != git.text(cwd, *folder):
        raise cannot_isolate(f"the repository's own configuration says that its files are in {top}")
    git.check_programs(top)
    real = Path(os.path.realpath(project))
    home = real if real.is_relative_to(top) else top
    with HOME:
        path = _make_home(home) / name.replace("/", "-")
    patch = _save_patch(git, top, base, state / "worktrees" / f"{path.name}.patch", is_hidden)
    branch = f"worktree-{name}"
    plan = Worktree(str(top), str(path), branch, base, str(path), str(patch) if patch else "")
    if path.exists() or git.try_text(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"):
        raise cannot_isolate(f"there is a worktree or a branch {branch!r} already")
    before(plan)
    with HOME:
        _make_home(home)  # the last worktree may have been removed since
        git.text(top, "worktree", "add", "--quiet", "-b", branch, str(path), base, problem="git made no worktree")
    below = Path(os.path.realpath(cwd)).relative_to(top)
    inside = path / below if (path / below).is_dir() else path
    return replace(plan, cwd=str(inside))


def end_worktree(worktree: Worktree, env: Mapping[str, str]) -> str:
    """Remove a worktree in which nothing changed; else keep it, and say where it is."""
    path = Path(worktree.path)
    if not path.is_dir():
        return ""
    try:
        if not unsaved_work(worktree, env):
            remove_worktree(worktree, env)
            return ""
    except ToolError as error:
        return f"[The worktree {worktree.path} is kept: {error}]"
    return (
        f"[What it changed is in the worktree {worktree.path}, on the branch {worktree.branch}, from the commit "
        f"{worktree.base[:12]}. `git worktree remove` and `git branch -D` remove both.]"
    )


def unsaved_work(worktree: Worktree, env: Mapping[str, str]) -> str:
    """What exists only in a worktree; empty = nothing. ToolError if git cannot say."""
    path = Path(worktree.path)
    git = Git(env, (path, Path(worktree.repository)))
    git.check_programs(path)
    found: list[str] = []
    changed = git.text(path, "status", "--porcelain", "--untracked-files=all").splitlines()
    if changed:
        found.append(f"{len(changed)} changed file{'s' * (len(changed) != 1)} ({changed[0][3:]})")
    heads = {git.text(path, "rev-parse", "HEAD"), git.text(path, "rev-parse", worktree.branch)} - {worktree.base}
    if heads:
        commits = git.try_text(path, "rev-list", "--count", *sorted(heads), f"^{worktree.base}") or "some"
        found.append(f"{commits} new commit{'s' * (commits != '1')} on {worktree.branch}")
    if any(each.is_dir() for each in _entries(path / FOLDER)):
        found.append("worktrees inside it")
    return ", ".join(found)


def remove_worktree(worktree: Worktree, env: Mapping[str, str]) -> None:
    """Remove a worktree and its branch with all that is in them; ToolError if git refuses."""
    repository = Path(worktree.repository)
    git = Git(env, (Path(worktree.path), repository))
    with HOME:  # git reads the worktrees of others here, and fails on one that is only half made
        git.text(repository, "worktree", "remove", "--force", worktree.path)
        git.text(repository, "branch", "--quiet", "-D", worktree.branch)
    if worktree.patch:
        Path(worktree.patch).unlink(missing_ok=True)
    _tidy(Path(worktree.path).parent)


def find_worktree(path: Path, cwd: Path, env: Mapping[str, str]) -> Worktree:
    """A worktree of the repository around `cwd` that exists already; ToolError if there is none at the path."""
    git = Git(env, (cwd, path))
    top = git.text(cwd, "rev-parse", "--show-toplevel", problem="this folder is in no git repository")
    listed = git.text(cwd, "worktree", "list", "--porcelain", "-z").split("\0\0")
    real = os.path.realpath(path)
    for entry in listed[1:]:  # the first is the repository's own folder
        facts = dict(line.partition(" ")[::2] for line in entry.split("\0"))
        if os.path.realpath(facts.get("worktree", "")) == real and "prunable" not in facts:
            branch = facts.get("branch", "").removeprefix("refs/heads/")
            base = git.text(Path(real), "merge-base", "HEAD", git.text(cwd, "rev-parse", "HEAD"))
            return Worktree(top, real, branch or "HEAD", base, real)
    raise cannot_isolate(f"{str(path)!r} is not a worktree of this repository. `git worktree list` shows them")


def cannot_isolate(why: str) -> ToolError:
    """The error when an agent cannot work apart: it then does not work at all."""
    return ToolError(f"There is no worktree: {why}. Work without one, or ask the user.")


class Git:
    """Runs git without what a repository could make it run."""

    def __init__(self, env: Mapping[str, str], folders: Iterable[Path]) -> None:
        """Programs that lie in the repositories around `folders` are never started."""
        path = path_outside(env.get("PATH", ""), [str(each) for each in map(_project_of, folders)])
        self._program = find_program("git", path)
        if not self._program:
            raise cannot_isolate("there is no git program outside of the project")
        self._env = {name: env[name] for name in KEPT if name in env}
        self._env |= {
            "PATH": path,
            "GIT_ALLOW_PROTOCOL": "none",  # a setting for one protocol would go before `protocol.allow`
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }

    def run(
        self, folder: Path, *arguments: str, env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run a command in a folder."""
        try:
            return subprocess.run(  # noqa: S603  # git, with arguments of ours
                (self._program, *SAFE, *arguments),
                cwd=folder,
                env={**self._env, **(env or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise cannot_isolate(f"git {arguments[0]} failed: {error}") from error

    def text(self, folder: Path, *arguments: str, problem: str = "") -> str:
        """What a command prints. Raises ToolError if it fails."""
        done = self.run(folder, *arguments)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            why = problem or f"git {arguments[0]} failed"
            raise cannot_isolate(f"{why} ({said[-1]})" if said else why)
        return os.fsdecode(done.stdout).rstrip("\n")

    def check_programs(self, folder: Path) -> None:
        """Raise ToolError if the configuration of the repository, or of one of its worktrees, may run programs."""
        done = self.run(folder, "config", "--show-scope", "--includes", "--name-only", "--get-regexp", RUNS_PROGRAMS)
        if done.returncode not in (0, 1):  # 1: there are none
            raise cannot_isolate("the repository's own configuration cannot be read")
        for scope, _, name in (line.partition("\t") for line in os.fsdecode(done.stdout).splitlines()):
            if scope in OF_REPOSITORY:
                raise cannot_isolate(f"the repository's own configuration may run programs ({name})")

    def try_text(self, folder: Path, *arguments: str) -> str:
        """What a command prints; empty if it fails."""
        done = self.run(folder, *arguments)
        return "" if done.returncode else os.fsdecode(done.stdout).rstrip("\n")


def _project_of(folder: Path) -> Path:
    """The outermost repository around a folder, or the folder itself; a worktree lies in the project's folder."""
    real = Path(os.path.realpath(folder))
    return next((each for each in reversed((real, *real.parents)) if os.path.lexists(each / ".git")), real)


def _make_home(project: Path) -> Path:
    """The folder for worktrees, which git does not list; nothing is followed out of the project."""
    for folder in (project / FOLDER.parent, project / FOLDER):
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise cannot_isolate(f"{folder} is not a folder")
        folder.mkdir(exist_ok=True)
    ignore = project / FOLDER / ".gitignore"
    if ignore.is_symlink():
        raise cannot_isolate(f"{ignore} is a link")
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(ignore, flags, 0o644), "w", encoding="utf-8") as file:
            if not os.fstat(file.fileno()).st_size:  # it is new, or who made it was killed before it was written
                file.write("*\n")
    except OSError as error:
        raise cannot_isolate(f"{ignore} cannot be written ({error.strerror})") from error
    return project / FOLDER


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _tidy(home: Path) -> None:
    """Remove the folder for worktrees after the last of them."""
    with HOME:
        if [each.name for each in _entries(home)] != [".gitignore"]:
            return
        (home / ".gitignore").unlink()
        home.rmdir()
        if not _entries(home.parent):
            home.parent.rmdir()


def _save_patch(git: Git, top: Path, base: str, file: Path, is_hidden: Callable[[str], bool]) -> Path | None:
    """What is not committed, as a patch in a file; None = nothing. Index and objects are copies."""
    index = top / git.text(top, "rev-parse", "--git-path", "index")
    objects = top / git.text(top, "rev-parse", "--git-path", "objects")
    untracked = git.text(top, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    size = sum(os.lstat(top / name).st_size for name in untracked if name and os.path.lexists(top / name))
    with tempfile.TemporaryDirectory(prefix="handrail-") as scratch:
        copy = Path(scratch, "index")
        if index.exists():
            shutil.copy2(index, copy)
        env = {
            "GIT_INDEX_FILE": str(copy),
            "GIT_OBJECT_DIRECTORY": str(Path(scratch, "objects")),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        Path(scratch, "objects").mkdir()
        exclude = (".", ":(exclude,top).handrail")
        which = "--all" if size <= MAX_UNTRACKED else "--update"
        added = git.run(top, "add", which, "--", *exclude, env=env)
        how = ("--cached", "--binary", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all")
        named = git.run(top, "diff", *how, "--name-only", "-z", base, env=env)
        names = [each for each in os.fsdecode(named.stdout).split("\0") if each]
        hidden = [f":(exclude,top,literal){each}" for each in names if is_hidden(os.path.realpath(top / each))]
        changes = git.run(top, "diff", *how, base, "--", ".", *hidden, env=env)
        if named.returncode or added.returncode or changes.returncode:
            said = (added.stderr + changes.stderr).decode("utf-8", "replace").strip()
            raise cannot_isolate(f"what is not committed cannot be read ({said[-200:]})")
        if not changes.stdout:
            return None
        make_private_folder(file.parent)
        file.touch(0o600)
        file.write_bytes(changes.stdout)
        return file
