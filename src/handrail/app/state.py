"""Where handrail keeps its own files."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from handrail.dispatch.results import ResultStore


def state_folder(variables: Mapping[str, str]) -> Path:
    """The owner's state folder; `HANDRAIL_STATE_DIR` moves it. It is not made here."""
    moved = variables.get("HANDRAIL_STATE_DIR")
    return Path(moved).expanduser().absolute() if moved else platformdirs.user_state_path("handrail", appauthor=False)


def result_store(variables: Mapping[str, str]) -> ResultStore:
    """A folder of its own for the big results of this run; nothing is written before there is one."""
    return ResultStore(state_folder(variables) / "results" / f"{os.getpid()}-{secrets.token_hex(4)}")
