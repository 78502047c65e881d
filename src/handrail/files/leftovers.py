"""Removes the temporary files that killed processes left beside files; `open_journals` says how these are known."""

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.errors import UndoError
from handrail.files.open_journals import FOLDER
from handrail.files.process_notes import lock_note
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
        with suppress(OSError, UndoError), lock_note(marker) as text:
            if text:
                process, _, name = text.partition(" ")
                removed += restore.sweep(undo / name, process=int(process))
            elif marker.stat().st_mtime > time.time() - DAY:
                continue  # it is being made
            marker.unlink()
    return tuple(removed)
