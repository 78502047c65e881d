"""`handrail redo`: take back the last undo."""

import argparse
import os
from pathlib import Path

from handrail.cli.undo import journal_of, print_result
from handrail.errors import UndoError
from handrail.files.restore import go_back, latest_undone
from handrail.files.undo import read
from handrail.session.state_folder import undo_folder


def run(chosen: argparse.Namespace) -> int:
    """Bring files back to what they held before the last `handrail undo`."""
    folder = journal_of(chosen.session, undo_folder(os.environ), os.path.realpath(Path.cwd()))
    history = read(folder)
    to = latest_undone(history)
    if not to:
        raise UndoError(
            f"Session {history.session} has nothing to redo: no undo was made, or the agent has changed files since. "
            "`handrail undo --list` shows all changes."
        )
    done = go_back(folder, to, force=chosen.force, by="redo")
    print_result(done, f"changed again in session {history.session}.", as_json=chosen.json)
    return 0
