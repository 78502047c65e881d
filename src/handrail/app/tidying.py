"""Deleting what nobody used for a long time: sessions and what belongs to them. Once a day, after the work, briefly."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from handrail.app.state import session_store, state_folder, undo_folder
from handrail.sessions.store import DAY, remove_tree

KEPT_DAYS = 30
PATIENCE = 0.3
"""Seconds; what is left over then waits for the next run."""
RUN_FOLDERS = ("runs", "results")


def tidy(env: Mapping[str, str], days: int | None = None, *, now: Callable[[], float] = time.monotonic) -> None:
    """Delete what is older than so many days (30 by default), unless that was done today."""
    kept = KEPT_DAYS if days is None else days
    state = state_folder(env)
    mark = state / "tidied"
    if not _due(mark):
        return
    until = now() + PATIENCE
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark.touch(0o600)  # first, so that of two runs that end together one does it
    for session_id in session_store(env).prune(kept, lambda: now() < until):
        for folder in (undo_folder(env), *(state / name for name in RUN_FOLDERS)):
            remove_tree(folder / session_id)
    for name in RUN_FOLDERS:
        _forget(state / name, time.time() - kept * DAY, lambda: now() < until)
    if now() >= until:
        mark.unlink(missing_ok=True)


def _due(mark: Path) -> bool:
    try:
        return mark.stat().st_mtime < time.time() - DAY
    except FileNotFoundError:
        return True


def _forget(folder: Path, oldest: float, in_time: Callable[[], bool]) -> None:
    """Delete the folders of runs in which nothing was changed since; also of those that kept no session."""
    if not folder.is_dir():
        return
    for each in folder.iterdir():
        if not in_time():
            return
        if _newest(each) < oldest:
            remove_tree(each)


def _newest(folder: Path) -> float:
    times = [folder.lstat().st_mtime]
    for place, _, files in os.walk(folder):
        times += [os.lstat(os.path.join(place, name)).st_mtime for name in (*files, ".")]  # noqa: PTH118  # os.walk
    return max(times)
