"""Where handrail keeps its own files."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.conversation.redact import Redactor, build_redactor
from handrail.dispatch.results import DEFAULT_LIMITS, ResultLimits, ResultStore
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
    """The owner's state folder; `HANDRAIL_STATE_DIR` moves it. It is not made here."""
    moved = variables.get("HANDRAIL_STATE_DIR")
    if moved:
        return Path(moved).expanduser().absolute()
    if sys.platform == "linux":  # where it is simple, no first request waits for a library
        chosen = variables.get("XDG_STATE_HOME", "")
        usual = (Path(chosen) if chosen.startswith("/") else Path.home() / ".local" / "state") / "handrail"
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
