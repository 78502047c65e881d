"""
Worktrees that are being made: each is noted before git makes it, and until the one it is for has written it down.

The note is locked by its process. One whose lock is free was left by a process that was killed in between, so that
nothing else knows of the worktree.
"""

import fcntl
import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from handrail.agents.worktrees import HOME, Git, Worktree, end_worktree
from handrail.errors import HandrailError
from handrail.files.private_folder import make_private_folder
from handrail.files.process_notes import lock_note

FOLDER = Path("worktrees", "pending")
MINUTE = 60.0
ATTEMPTS = 100
_held: dict[str, tuple[Path, int]] = {}


def note_pending(state: Path, worktree: Worktree) -> None:
    """Note a worktree that will be made now; OSError if that cannot be written."""
    file, descriptor = _new_note(state / FOLDER)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, worktree.as_json().encode("utf-8", "surrogateescape"))
    _held[worktree.path] = file, descriptor


def _new_note(folder: Path) -> tuple[Path, int]:
    attempts = ATTEMPTS
    while True:
        attempts -= 1
        try:
            file = make_private_folder(folder) / uuid.uuid4().hex
            return file, os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except (FileNotFoundError, FileExistsError):  # another one removes the folder, because it is empty
            if not attempts:
                raise


def forget_pending(path: str) -> None:
    """The worktree at a path is written down, or was not made."""
    file, descriptor = _held.pop(path, (None, -1))
    if file is not None:
        file.unlink(missing_ok=True)
        os.close(descriptor)
        with suppress(OSError):  # others are being made
            file.parent.rmdir()


def remove_orphans(state: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Remove the worktrees that killed processes left; what became of each. One in which there is work is kept."""
    try:
        files = sorted((state / FOLDER).iterdir())
    except OSError:
        return ()
    found: list[str] = []
    for file in files:
        with suppress(OSError, ValueError, TypeError, HandrailError), lock_note(file) as text:
            if text:
                orphan = Worktree.from_json(text)
                kept = _remove_orphan(orphan, env)
                found.append(kept or f"removed {orphan.path}, which a killed run had left")
                if kept:
                    continue
            elif file.stat().st_mtime > time.time() - MINUTE:
                continue  # it is being made
            file.unlink()
    with suppress(OSError):
        (state / FOLDER).rmdir()
    return tuple(found)


def _remove_orphan(worktree: Worktree, env: Mapping[str, str]) -> str:
    """Remove a worktree that nothing else knows of; why it is kept, or an empty text."""
    top, git = Path(worktree.repository), Git(env, (Path(worktree.repository),))
    if kept := end_worktree(worktree, env):
        return kept
    if git.try_text(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{worktree.branch}") == worktree.base:
        with HOME:  # git was killed before the folder was there
            git.text(top, "worktree", "prune")
            git.text(top, "branch", "--quiet", "-D", worktree.branch)
    return ""
