"""`handrail sessions export --format html` and `--format trace`: what happened in a session, as one file."""

import os
from pathlib import Path

from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.conversation.json_bytes import json_bytes
from handrail.conversation.redact import Redactor
from handrail.files.undo import read as read_journal
from handrail.session.redactor import redactor_for
from handrail.session.settings.session_settings import open_settings
from handrail.session.state_folder import state_folder
from handrail.view.changes import FileDiff, file_diffs
from handrail.view.files import RunFiles, read_run
from handrail.view.trace import trace_of
from handrail.web.export import export_page, without_contents


def page_of(session: Path, *, contents: bool) -> bytes:
    """The page of a session, with the secrets of this environment and these settings removed."""
    files = RunFiles(session, state_folder(os.environ))
    run, diffs = read_run(files), list[FileDiff]()
    if files.journal is not None and files.journal.is_dir():
        diffs = file_diffs(files.journal, read_journal(files.journal))
    return export_page(run, diffs, redactor_here(), contents=contents)


def trace_file(session: Path, *, contents: bool) -> bytes:
    """The trace of a session, with the same secrets removed."""
    run = read_run(RunFiles(session, state_folder(os.environ))).as_json()
    shown = redactor_here().value(run) if contents else without_contents(run)
    return json_bytes(trace_of(shown)) + b"\n"


def redactor_here() -> Redactor:
    """Removes the secrets of this environment and these settings."""
    # only the patterns of `redact` count here, whatever else the settings of this folder may lack
    state = state_folder(os.environ)
    loaded = open_settings(Path.cwd(), os.environ, state, NO_FLAGS_GIVEN, lambda _warning: None).loaded
    return redactor_for(loaded.env, tuple(loaded.settings.get("redact") or ()))
