"""
The git folders that belong to a working folder, and what in them must stay as it is.

A commit has to write into the git folder, but hooks, configuration and the files that lead git elsewhere are read or
run by later commands that are not confined. A linked worktree has its git folder elsewhere; the `.git` file that says
so is believed only if that folder names the worktree in return.
"""

import os
import posixpath
import stat

from handrail.processes.sandbox.paths import GIT_GUARDED
from handrail.records import record


@record
class GitFolders:
    """What may be written beside the working folders, and what may not be written at all."""

    writable: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()


def git_folders(roots: tuple[str, ...]) -> GitFolders:
    """Looks at `.git` in each of the folders that can be written."""
    found = [_of(root) for root in roots]
    return GitFolders(
        writable=tuple(path for each in found for path in each.writable),
        guarded=tuple(path for each in found for path in each.guarded),
    )


def _of(root: str) -> GitFolders:
    if posixpath.basename(root) == ".git":
        return GitFolders(guarded=_inside(root))
    dot_git = f"{root}/.git"
    try:
        mode = os.lstat(dot_git).st_mode
    except OSError:
        mode = 0
    if stat.S_ISDIR(mode):
        return GitFolders(guarded=_inside(dot_git))
    linked = _linked_folder(dot_git) if stat.S_ISREG(mode) else None
    if linked is None:
        # without a repository, files such as HEAD and config in the folder itself would make it one
        return GitFolders(guarded=(dot_git, *(() if mode else (f"{root}/HEAD",))))
    entries = posixpath.dirname(linked)
    shared = posixpath.dirname(entries)
    return GitFolders(
        writable=(shared,),
        guarded=(
            dot_git,
            *(path for path in _inside(shared) if path != entries),
            *(f"{linked}/{name}" for name in ("commondir", "gitdir", "config.worktree")),
            *(f"{entries}/{other}" for other in sorted(os.listdir(entries)) if f"{entries}/{other}" != linked),  # noqa: PTH208
        ),
    )


def _inside(folder: str) -> tuple[str, ...]:
    # only the configuration itself can say whether git reads `config.worktree` in this folder
    own_settings = b"worktreeconfig" in (_read(f"{folder}/config") or b"").lower()
    return tuple(f"{folder}/{name}" for name in GIT_GUARDED if own_settings or name != "config.worktree")


def _linked_folder(dot_git: str) -> str | None:
    """The folder `.../.git/worktrees/NAME` that belongs to this `.git` file, if it says so itself."""
    says = os.fsdecode(_read(dot_git) or b"").strip()
    if not says.startswith("gitdir:"):
        return None
    folder = os.path.realpath(posixpath.join(posixpath.dirname(dot_git), says.removeprefix("gitdir:").strip()))
    back = os.path.realpath(posixpath.join(folder, os.fsdecode(_read(f"{folder}/gitdir") or b"").strip()))
    shaped = folder.split("/")[-3:-1] == [".git", "worktrees"]
    return folder if shaped and back == dot_git else None


def _read(path: str) -> bytes | None:
    """The start of a regular file. Never waits for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return os.read(descriptor, 100_000) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)
