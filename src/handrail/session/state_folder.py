"""Where handrail keeps its own files."""

import os
import stat
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.conversation.redact import Redactor, build_redactor
from handrail.dispatch.results import DEFAULT_LIMITS, ResultLimits, ResultStore
from handrail.errors import HandrailError
from handrail.lazy import lazy
from handrail.transcripts.log import Durability, Mirror
from handrail.transcripts.store import TranscriptStore

if TYPE_CHECKING:
    import platformdirs
else:
    platformdirs = lazy("platformdirs")

UNKNOWN_OWNER = 65534
"""Whom the kernel names for users of another machine or container."""
UNDO = "undo"
RUN_FOLDERS = ("runs", "results", "hooks")
"""Each run has a folder of its own in them: that of its session, or one with the process id in its name."""


def state_folder(variables: Mapping[str, str]) -> Path:
    """
    The owner's state folder; `HANDRAIL_STATE_DIR` moves it. It is not made here.

    Raises:
        HandrailError: it belongs to another user, or others can write or replace it: what is trusted could be theirs.
    """
    folder = _state_folder(variables)
    return _require_own(folder, _identity(folder))


def _identity(folder: Path) -> tuple[int, ...]:
    """Which folder this is, whose, and who may do what in it; empty if it is not there."""
    try:
        found = folder.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_uid, found.st_mode


@lru_cache(maxsize=16)
def _require_own(folder: Path, _of: tuple[int, ...]) -> Path:
    """The way to the same folder is looked at once in a process, 0.3 ms each; one that comes later is another."""
    if problem := _sharing_problem(folder):
        raise HandrailError(
            f"The state folder {str(folder)!r} {problem}, so what is trusted and remembered there may not be yours. "
            f"Make it yours alone (chown, chmod go-w), or set HANDRAIL_STATE_DIR to another folder."
        )
    return folder


def _sharing_problem(folder: Path) -> str:
    """Why others have a say in what a folder holds; empty if they do not, or if it is not there yet."""
    try:
        found = folder.stat()
    except OSError:
        return _way_problem(folder)
    if found.st_uid != os.geteuid():
        return f"belongs to another user (uid {found.st_uid})"
    if found.st_mode & 0o022:
        return f"can be written by others (mode {stat.S_IMODE(found.st_mode):o})"
    return _way_problem(folder) or (_inner_problem(folder) if found.st_mode & 0o011 else "")


def _way_problem(folder: Path) -> str:
    """Why others can put another folder into its place: a folder or a link above it, as spelled and as it leads."""
    real = Path(os.path.realpath(folder))
    for each in dict.fromkeys((folder, *folder.parents, *real.parents)):
        try:
            found = each.lstat()
        except OSError:
            continue
        is_link = stat.S_ISLNK(found.st_mode)
        # root may work in the home of anybody, and an owner that this system does not know may be no one
        if found.st_uid not in (0, os.geteuid(), UNKNOWN_OWNER) and (is_link or os.geteuid() != 0):
            return f"lies behind {str(each)!r}, which belongs to another user (uid {found.st_uid})"
        if not is_link and each != real and _is_open(found):
            return f"lies below {str(each)!r}, which others can write (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def _is_open(found: os.stat_result) -> bool:
    """Whether others can rename what lies in a folder. The own group is mostly a group of one."""
    others = 0o002 if found.st_gid == os.getegid() else 0o022
    return bool(found.st_mode & others) and not found.st_mode & stat.S_ISVTX


def _inner_problem(folder: Path) -> str:
    """Why others can change what lies in a folder that they can enter."""
    try:
        with os.scandir(folder) as entries:
            inside = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    except OSError:
        return ""
    return next(
        (
            f"holds {name!r}, which others can write or own (mode {stat.S_IMODE(found.st_mode):o}, uid {found.st_uid})"
            for name, found in inside
            if found.st_uid != os.geteuid() or (not stat.S_ISLNK(found.st_mode) and found.st_mode & 0o022)
        ),
        "",
    )


def _state_folder(variables: Mapping[str, str]) -> Path:
    moved = variables.get("HANDRAIL_STATE_DIR")
    if moved:
        return Path(moved).expanduser().absolute()
    if sys.platform == "linux":  # where it is simple, no first request waits for a library
        chosen = variables.get("XDG_STATE_HOME", "")
        home = Path(variables.get("HOME") or Path.home())
        usual = (Path(chosen) if chosen.startswith("/") else home / ".local" / "state") / "handrail"
    else:
        usual = platformdirs.user_state_path("handrail", appauthor=False)
    return usual


def result_store(variables: Mapping[str, str], limits: ResultLimits = DEFAULT_LIMITS) -> ResultStore:
    """A folder of its own for the big results of this run; nothing is written before there is one."""
    return ResultStore(state_folder(variables) / "results" / run_folder_name(), limits)


def session_store(
    variables: Mapping[str, str],
    redactor: Redactor | None = None,
    durability: Durability = "process",
    mirror: Mirror | None = None,
) -> TranscriptStore:
    """Where this person's sessions are kept; without a redactor, the secrets of the environment are taken out."""
    state = state_folder(variables)
    elsewhere = (state / UNDO, *(state / name for name in RUN_FOLDERS))
    return TranscriptStore(
        state / "sessions",
        redactor or build_redactor(variables),
        durability,
        elsewhere,
        mirror,
        copies=sdk_folder(variables),
    )


def sdk_folder(variables: Mapping[str, str]) -> Path:
    """Where the SDK looks for sessions. Of ours only copies lie there."""
    home = Path(variables.get("HOME") or Path.home())
    return Path(variables.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"


def undo_folder(variables: Mapping[str, str]) -> Path:
    """Where the undo journals of all sessions are."""
    return state_folder(variables) / UNDO


def run_folder_name() -> str:
    """A name for the folders of this run that no other run has."""
    return f"{os.getpid()}-{os.urandom(4).hex()}"
