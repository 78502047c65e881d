"""Deletes sessions that were not used for a long time, with their files: once a day, within a time limit."""

import os
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from handrail.session.state_folder import RUN_FOLDERS, session_store, state_folder
from handrail.transcripts.log import transcript_files
from handrail.transcripts.store import DAY, remove_tree

KEPT_DAYS = 30
PATIENCE = 0.3
"""Seconds; what is left over then waits for the next run."""


def tidy(env: Mapping[str, str], days: int | None = None, *, now: Callable[[], float] = time.monotonic) -> None:
    """Delete what is older than so many days (30 by default), unless that was done today."""
    kept = KEPT_DAYS if days is None else days
    state, sessions = state_folder(env), session_store(env)
    mark = state / "tidied"
    if not _due(mark):
        return
    until = now() + PATIENCE
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark.touch(0o600)  # first, so that of two runs that end together one does it
    for _ in sessions.prune(kept, lambda: now() < until):
        pass
    left = {Path(path).stem for path, _ in transcript_files(sessions.folder)}
    for name in RUN_FOLDERS:
        _forget(state / name, left, time.time() - kept * DAY, lambda: now() < until)
    if now() >= until:
        mark.unlink(missing_ok=True)


def _due(mark: Path) -> bool:
    try:
        return mark.stat().st_mtime < time.time() - DAY
    except FileNotFoundError:
        return True


def _forget(folder: Path, sessions: Collection[str], oldest: float, in_time: Callable[[], bool]) -> None:
    """Delete the folders of runs that kept no session, if the run is over and nothing was changed there since."""
    if not folder.is_dir():
        return
    for each in folder.iterdir():
        if not in_time():
            return
        if each.name not in sessions and not _runs(each.name) and _newest(each) < oldest:
            remove_tree(each)


def _runs(name: str) -> bool:
    """Whether there is a process of the id that the name begins with; it may be another one by now."""
    number = name.partition("-")[0]
    if not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _newest(folder: Path) -> float:
    times = [folder.lstat().st_mtime]
    for place, _, files in os.walk(folder):
        times += [os.lstat(os.path.join(place, name)).st_mtime for name in (*files, ".")]  # noqa: PTH118  # os.walk
    return max(times)
