"""The temporary folder of a session that keeps no files: made by the first to write there, gone with the session."""

import os
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from handrail.transcripts.store import remove_tree


class ScratchFolder:
    """A private folder below the temporary one, with a name that no other program can guess."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.path = Path(variables.get("TMPDIR") or "/tmp").absolute() / f"handrail-{os.urandom(8).hex()}"  # noqa: S108
        weakref.finalize(self, _remove, self.path, os.getpid())  # also when the program ends

    def remove(self) -> None:
        """Remove what was written; the folder is made again if something still is."""
        _remove(self.path, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a process that was forked off does not own it
        with suppress(OSError):
            remove_tree(folder)
