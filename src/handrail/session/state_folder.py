"""Where handrail keeps its own files."""

import os
import stat
import sys
from collections.abc import Mapping
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

RUN_FOLDERS = ("runs", "results", "hooks")
"""Each run has a folder of its own in them: that of its session, or one with the process id in its name."""


def state_folder(variables: Mapping[str, str]) -> Path:
    """
    The owner's state folder; `HANDRAIL_STATE_DIR` moves it. It is not made here.

    Raises:
        HandrailError: it belongs to another user, or others can write to it: trust, rules and sessions could be theirs.
    """
    folder = _state_folder(variables)
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
        return ""
    if found.st_uid != os.geteuid():
        return f"belongs to another user (uid {found.st_uid})"
    return f"can be written by others (mode {stat.S_IMODE(found.st_mode):o})" if found.st_mode & 0o022 else ""


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
    elsewhere = (undo_folder(variables), *(state / name for name in RUN_FOLDERS))
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
    return state_folder(variables) / "undo"


def run_folder_name() -> str:
    """A name for the folders of this run that no other run has."""
    return f"{os.getpid()}-{os.urandom(4).hex()}"
