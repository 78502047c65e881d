"""
Gathers the facts about a run's surroundings.

The branch is read from `.git/HEAD`. What changed needs `git status`: it is started as early as possible, runs beside
the rest of the start-up, and is hardly waited for; if it takes longer, its answer comes with a later request. A
repository's configuration can make git run programs; every such switch is turned off, and a repository that defines
filters is not asked at all. Nor is one whose configuration we cannot read whole. Git gets the folder that was looked
at, and finds none by itself.
"""

import os
import select
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from handrail.extensions.places import repository_of
from handrail.files.search_path import absolute_folders, find_program, lies_in
from handrail.files.small_file import read_small
from handrail.loop.prompt import EnvironmentFacts, GitFacts

PATIENCE = 0.03
"""How many seconds a first request waits for git."""
LARGE_INDEX = 2_000_000
"""Bytes of the index of about 20,000 files: git is not waited for, since it takes longer, and yields to the start."""
LOWER_PRIORITY = 10
MAX_SECONDS = 30.0
STILL_RUNS = "git status still runs, its answer follows"
MAX_OUTPUT = 64 * 1024
MAX_SMALL_FILE = 64 * 1024
GIT_FILE = b"gitdir: "

SAFE_SWITCHES = (
    "--no-optional-locks",
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.pager=cat"),
    *("-c", "core.sshCommand=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "status.submoduleSummary=false"),
)
ONE_THREAD = ("-c", "core.preloadIndex=false")
"""For a large index git starts up to twenty threads, which together would take a processor from the start."""
STATUS = ("status", "--porcelain=v1", "-z", "--branch", "--untracked-files=normal", "--ignore-submodules=all")


class GitProbe:
    """`git status` of a folder, started at once if that is safe. It ends with `close`, or by itself."""

    def __init__(self, cwd: Path, env: Mapping[str, str], patience: float = PATIENCE, *, asks: bool = True) -> None:
        self._root = repository_of(cwd)
        self._patience = patience
        self._deadline = time.monotonic() + MAX_SECONDS
        self._process: subprocess.Popen[bytes] | None = None
        self._data = b""
        self._is_owed = False
        self._facts = GitFacts()
        if self._root is None:
            return
        folder = git_folder(self._root)
        self._facts = GitFacts(branch_of(folder) if folder else "")
        if not asks:
            self._end_with("see git status")
            return
        inside = (str(self._root), os.path.realpath(self._root))
        folders = absolute_folders(env.get("PATH", os.defpath))
        path = os.pathsep.join(each for each in folders if not lies_in(each, inside))
        program = find_program("git", path)  # none that a project brings along
        if folder is None:
            self._end_with(".git leads nowhere")
        elif not program:
            self._end_with("there is no git program")
        elif runs_filters(folder):
            self._end_with("the repository may define filters or includes, which git status could run")
        else:
            is_large = _size(folder / "index") > LARGE_INDEX
            switches = (*SAFE_SWITCHES, *ONE_THREAD) if is_large else SAFE_SWITCHES
            self._process = _start(program, switches, folder, self._root, {**env, "PATH": path})
            if is_large:
                self._patience = 0.0
                with suppress(OSError):
                    own = os.getpriority(os.PRIO_PROCESS, 0)
                    os.setpriority(os.PRIO_PROCESS, self._process.pid, own + LOWER_PRIORITY)

    def facts(self) -> GitFacts | None:
        """What is known by now; waits for git no longer than its patience. None outside a repository."""
        if self._root is None:
            return None
        self._is_owed = not self._read(self._patience)
        return replace(self._facts, note=STILL_RUNS) if self._is_owed else self._facts

    def late_facts(self) -> GitFacts | None:
        """Everything, once, if `facts` could not give it and it is known now. Does not wait."""
        if not self._is_owed or not self._read(0.0):
            return None
        self._is_owed = False
        return self._facts

    def close(self) -> None:
        """End git if it still runs."""
        process, self._process = self._process, None
        if process is not None and process.stdout is not None:
            process.kill()
            process.stdout.close()
            process.wait()

    def _read(self, patience: float) -> bool:
        """Take what git has written, for so many seconds; whether it is over."""
        if self._process is None:
            return True
        assert self._process.stdout is not None
        descriptor, until = self._process.stdout.fileno(), time.monotonic() + patience
        while len(self._data) < MAX_OUTPUT:
            if not select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
                if time.monotonic() < self._deadline:
                    return False
                return self._end_with("git status took too long")
            piece = os.read(descriptor, MAX_OUTPUT)
            if not piece:
                code = self._process.wait()
                return self._end_with(f"git status failed with exit code {code}" if code else "")
            self._data += piece
        self._data = self._data[: self._data.rfind(b"\0") + 1]  # more than a prompt has room for
        return self._end_with("")

    def _end_with(self, note: str) -> bool:
        """Git is over: with a note why nothing is known, or with what it said."""
        self.close()
        if note:
            self._facts = replace(self._facts, note=note)
        else:
            upstream, changes = parse_status(self._data)
            self._facts = replace(self._facts, upstream=upstream, changes=changes)
        return True


def gather(cwd: Path, probe: GitProbe, *, model: str = "") -> EnvironmentFacts:
    """All facts; the slow part has been running since the probe was made."""
    system = os.uname()
    platform = f"{system.sysname} {system.release} {system.machine}"
    return EnvironmentFacts(cwd, platform, time.strftime("%Y-%m-%d"), model, probe.facts())


def git_folder(root: Path) -> Path | None:
    """The folder with HEAD: `.git` itself, or what the file `.git` of a worktree points to."""
    place = root / ".git"
    if place.is_dir():
        return place
    written = _small(place)
    if written is None or not written.startswith(GIT_FILE):
        return None
    pointer = _path_in(written.removeprefix(GIT_FILE))
    folder = root / pointer
    return folder if pointer and folder.is_dir() else None


def branch_of(folder: Path) -> str:
    """The branch, or the short id of a detached commit; empty if HEAD does not say."""
    head = (_small(folder / "HEAD") or b"").decode("utf-8", "replace").strip()
    if head.startswith("ref:"):
        return head.removeprefix("ref:").strip().removeprefix("refs/heads/").replace(".invalid", "")
    return f"none, detached at {head[:10]}" if len(head) >= 40 and head.isalnum() else ""


def runs_filters(folder: Path) -> bool:
    """Whether the repository's own configuration defines a filter, draws in files that could, or cannot be told."""
    written = _small(folder / "commondir")
    if written is None or b"\0" in written:  # git would end the path there
        return True
    common = _path_in(written)
    configs = [folder / "config", folder / "config.worktree", *([folder / common / "config"] if common else [])]
    return any(text is None or b"filter" in text.lower() or b"include" in text.lower() for text in map(_small, configs))


def parse_status(output: bytes) -> tuple[str, tuple[str, ...]]:
    """The upstream with its distance, and one line per changed path, from `git status --porcelain -z --branch`."""
    upstream = ""
    changes: list[str] = []
    records = iter(output.decode("utf-8", "backslashreplace").split("\0"))
    for record in records:
        if record.startswith("## "):
            upstream = record[3:].partition("...")[2]
        elif record:
            changes.append(record)
            if record[0] in "RC":
                next(records, "")  # the old name follows as a record of its own
    return upstream, tuple(changes)


def _start(
    program: str, switches: tuple[str, ...], folder: Path, root: Path, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    surroundings = {name: value for name, value in env.items() if not name.startswith("GIT_")}
    surroundings |= {
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    return subprocess.Popen(  # noqa: S603  # a fixed command line, no shell
        [program, f"--git-dir={folder.absolute()}", f"--work-tree={root.absolute()}", *switches, *STATUS],
        cwd=root,
        env=surroundings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _small(path: Path) -> bytes | None:
    """All bytes of a small file, none if it is missing; None if it cannot be read whole."""
    try:
        data = read_small(path, MAX_SMALL_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError:
        return None
    return data if data is not None and len(data) <= MAX_SMALL_FILE else None


def _path_in(line: bytes) -> str:
    """The path that git reads there: it cuts off the line's end, and no blank."""
    return os.fsdecode(line.rstrip(b"\r\n"))
