"""Removes the temporary files that killed processes left beside files; `open_journals` says how these are known."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.errors import UndoError
from handrail.files.open_journals import FOLDER
from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.files import restore
else:
    restore = lazy("handrail.files.restore")  # only after a kill

DAY = 86_400.0


def remove_leftovers(undo: Path) -> tuple[str, ...]:
    """Remove the temporary files that killed processes left beside files; returns the paths. `undo` holds journals."""
    try:
        markers = sorted((undo / FOLDER).iterdir())
    except OSError:
        return ()
    removed: list[str] = []
    for marker in markers:
        with suppress(OSError, UndoError), _lock_marker(marker) as text:
            if text:
                process, _, name = text.partition(" ")
                removed += restore.sweep(undo / name, process=int(process))
            elif marker.stat().st_mtime > time.time() - DAY:
                continue  # it is being made
            marker.unlink()
    return tuple(removed)


@contextmanager
def _lock_marker(marker: Path) -> Iterator[str]:
    """The text of a marker whose process is gone; raises BlockingIOError if it lives."""
    descriptor = os.open(marker, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield os.read(descriptor, 4096).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
