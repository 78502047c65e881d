"""
Marks the undo journals that processes write, so that what a killed one left beside files can be found at once.

    <undo>/.open/<name>     "<process id> <name of the journal>", locked as long as the process lives

A lock ends with its process, however that ends. A marker that is not locked therefore belongs to a process that is
gone, and the temporary files that its journal names for that process are in use no more.
"""

import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path

from handrail.files.private_folder import make_private_folder

FOLDER = ".open"


class OpenMarker:
    """The marker of a journal. It goes with its owner or with the process; after a kill it stays, without its lock."""

    def __init__(self, journal: Path, owner: object) -> None:
        """Raises OSError."""
        path = make_private_folder(journal.parent / FOLDER) / os.urandom(8).hex()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        weakref.finalize(owner, _close, self._descriptor, path, os.getpid())
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.write(self._descriptor, f"{os.getpid()} {journal.name}".encode())


def _close(descriptor: int, path: Path, process: int) -> None:
    if os.getpid() == process:  # a process that was forked off does not own it
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)
