"""
Marks the undo journals that processes write, so that what a killed one left beside files can be found at once.

    <undo>/.open/<name>     "<process id> <name of the journal>", locked as long as the process lives

A lock ends with its process, however that ends. A marker that is not locked therefore belongs to a process that is
gone, and the temporary files that its journal names for that process are in use no more.
"""

import fcntl
import os
import secrets
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.errors import UndoError
from handrail.files.private_folder import make_private_folder
from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.files import restore
else:
    restore = lazy("handrail.files.restore")  # only after a kill

FOLDER = ".open"
DAY = 86_400.0


class OpenMarker:
    """The marker of a journal. It goes with its owner or with the process; after a kill it stays, without its lock."""

    def __init__(self, journal: Path, owner: object) -> None:
        """Raises OSError."""
        path = make_private_folder(journal.parent / FOLDER) / secrets.token_hex(8)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        weakref.finalize(owner, _close, self._descriptor, path, os.getpid())
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.write(self._descriptor, f"{os.getpid()} {journal.name}".encode())


def _close(descriptor: int, path: Path, process: int) -> None:
    if os.getpid() == process:  # a process that was forked off does not own it
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def remove_leftovers(undo: Path) -> tuple[str, ...]:
    """Remove the temporary files that killed processes left beside files; returns the paths. `undo` holds journals."""
    try:
        markers = sorted((undo / FOLDER).iterdir())
    except OSError:
        return ()
    removed: list[str] = []
    for marker in markers:
        with suppress(OSError, UndoError), _locked(marker) as text:
            if text:
                process, _, name = text.partition(" ")
                removed += restore.sweep(undo / name, process=int(process))
            elif marker.stat().st_mtime > time.time() - DAY:
                continue  # it is being made
            marker.unlink()
    return tuple(removed)


@contextmanager
def _locked(marker: Path) -> Iterator[str]:
    """The text of a marker whose process is gone; raises BlockingIOError if it lives."""
    descriptor = os.open(marker, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield os.read(descriptor, 4096).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
