"""
The git folders that belong to a working folder, and what in them must stay as it is.

A commit has to write into the git folder, but hooks, configuration and the files that lead git elsewhere are read or
run by later commands that nobody confines. A linked worktree has its git folder elsewhere; the `.git` file that says
so is believed only if that folder names the worktree in return.
"""

import os
from pathlib import Path

from handrail.processes.sandbox.places import GIT_GUARDED
from handrail.records import record


@record
class GitFolders:
    """What may be written beside the working folders, and what may not be written at all."""

    writable: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()


def git_folders(roots: tuple[str, ...]) -> GitFolders:
    """Looks at `.git` in each of the folders that can be written."""
    found = [_of(Path(root)) for root in roots]
    return GitFolders(
        writable=tuple(path for each in found for path in each.writable),
        guarded=tuple(path for each in found for path in each.guarded),
    )


def _of(root: Path) -> GitFolders:
    dot_git = root / ".git"
    if root.name == ".git":
        return GitFolders(guarded=_inside(root))
    if dot_git.is_symlink() or not dot_git.exists():
        # without a repository, files such as HEAD and config in the folder itself would make it one
        return GitFolders(guarded=(str(dot_git), f"{root}/HEAD"))
    if dot_git.is_dir():
        return GitFolders(guarded=_inside(dot_git))
    linked = _linked(dot_git)
    if linked is None:
        return GitFolders(guarded=(str(dot_git),))
    shared = linked.parents[1]
    return GitFolders(
        writable=(str(shared),),
        guarded=(
            str(dot_git),
            *(str(shared / name) for name in GIT_GUARDED if name != "worktrees"),
            *(str(linked / name) for name in ("commondir", "gitdir", "config.worktree")),
            *(str(other) for other in linked.parent.iterdir() if other != linked),
        ),
    )


def _inside(folder: Path) -> tuple[str, ...]:
    return tuple(str(folder / name) for name in GIT_GUARDED)


def _linked(dot_git: Path) -> Path | None:
    """The folder `.../.git/worktrees/NAME` that belongs to this `.git` file, if it says so itself."""
    try:
        says = dot_git.read_text("utf-8").strip()
        folder = Path(os.path.realpath(dot_git.parent / says.removeprefix("gitdir:").strip()))
        back = Path(os.path.realpath(folder / (folder / "gitdir").read_text("utf-8").strip()))
    except (OSError, ValueError):
        return None
    shaped = folder.parent.name == "worktrees" and folder.parents[1].name == ".git"
    return folder if says.startswith("gitdir:") and shaped and back == dot_git else None
