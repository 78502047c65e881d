"""
Looks after a command in the sandbox for what it has planted: repositories that run something when git looks at them.

They are renamed, so that git does not see them, and reported. Harmless ones, such as a plain clone, stay.
"""

import os
import posixpath
import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack

from handrail.processes.sandbox.repositories import MOST_FOLDERS, FolderWalk, Repository

HELD = "held-back-by-handrail"


class PlantGuard:
    """Compares what is in the working folders before and after commands. Use it from any thread."""

    def __init__(self) -> None:
        self._walk = FolderWalk()
        self._lock = threading.Lock()
        self._reports: list[str] = []

    def begin(self, roots: tuple[str, ...], files: Callable[[], frozenset[str]]) -> Callable[[], None]:
        """Remember how things are; the answer is to be called when the command has ended. `files`: see `reports`."""
        with self._lock:
            before, made = self._walk.repositories(roots), files()
        return lambda: self._check(roots, before, made, files)

    def reports(self) -> str:
        """What was found since the last time, for the model and the user: repositories, and new protected files."""
        with self._lock:
            found, self._reports = self._reports, []
        return " ".join(found)

    def _check(
        self,
        roots: tuple[str, ...],
        before: dict[str, Repository],
        made: frozenset[str],
        files: Callable[[], frozenset[str]],
    ) -> None:
        with self._lock:
            after = self._walk.repositories(roots)
            for path, repository in after.items():
                if repository.runs and (path not in before or before[path].facts != repository.facts):
                    self._reports.append(hold_back(repository, roots))
            if not self._walk.complete:
                self._reports.append(
                    f"There are more than {MOST_FOLDERS:,} folders, and not all were searched for git repositories "
                    "that this command may have planted."
                )
            for path in sorted(files() - made):
                self._reports.append(f"{path!r} is new, and programs use it without being told to: look at it first.")


def hold_back(repository: Repository, roots: tuple[str, ...]) -> str:
    """Rename a repository so that git does not see it; what happened, for people."""
    folder, name = posixpath.split(repository.path)
    aside = f"{name}.{HELD}-{secrets.token_hex(3)}"
    what = f"The git repository {repository.path!r}, which this command made or changed, would run something by itself"
    try:
        with ExitStack() as stack:
            fd = open_below(folder, roots, stack)
            os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=fd)
    except OSError as error:
        return f"{what} ({repository.runs}), and could not be held back ({error.strerror}): do not use git there."
    return f"{what} ({repository.runs}). It was renamed to {aside!r}, so that git does not see it."


def open_below(folder: str, roots: tuple[str, ...], stack: ExitStack) -> int:
    """A descriptor of a folder below a root; a link on the way, which a command may have put there, is an error."""
    root = next(root for root in roots if folder == root or folder.startswith(root + "/"))
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(root, flags)
    stack.callback(os.close, fd)
    for step in filter(None, folder.removeprefix(root).split("/")):
        fd = os.open(step, flags, dir_fd=fd)
        stack.callback(os.close, fd)
    return fd
