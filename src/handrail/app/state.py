"""Where handrail keeps its own files."""

import os
import secrets
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from handrail.builtin.outfit import Outfit
from handrail.dispatch.results import ResultStore

if TYPE_CHECKING:
    from handrail.files.undo import Undo


def state_folder(variables: Mapping[str, str]) -> Path:
    """The owner's state folder; `HANDRAIL_STATE_DIR` moves it. It is not made here."""
    moved = variables.get("HANDRAIL_STATE_DIR")
    return Path(moved).expanduser().absolute() if moved else platformdirs.user_state_path("handrail", appauthor=False)


def result_store(variables: Mapping[str, str]) -> ResultStore:
    """A folder of its own for the big results of this run; nothing is written before there is one."""
    return ResultStore(state_folder(variables) / "results" / f"{os.getpid()}-{secrets.token_hex(4)}")


def plain_outfit(variables: Mapping[str, str], cwd: Path | None = None, session: str = "") -> Outfit:
    """What tools get when nobody said more: the working folder, and a state folder that nobody else uses."""
    folder = os.path.realpath(cwd or Path.cwd())
    home = os.path.realpath(variables.get("HOME") or Path.home())
    session = session or f"{os.getpid()}-{secrets.token_hex(4)}"
    state = state_folder(variables)
    undo: Undo = import_module("handrail.files.undo").Undo(undo_folder(variables) / session, folder)
    return Outfit(env=variables, home=home, working_dirs=lambda: (folder,), state=state / "runs" / session, undo=undo)


def undo_folder(variables: Mapping[str, str]) -> Path:
    """Where the undo journals of all sessions are."""
    return state_folder(variables) / "undo"
