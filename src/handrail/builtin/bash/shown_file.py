"""Counts a command that shows one file as reading it."""

import os
import stat
from pathlib import Path

from handrail.files.memory import FileMemory
from handrail.files.paths import real_path
from handrail.records import record
from handrail.shell.model import Analysis

READERS = frozenset({"cat", "head", "tail", "sed", "grep", "rg", "nl", "bat"})
MAX_BYTES = 50_000_000


@record
class Glance:
    """A file that a command is about to show, with its stat from before."""

    path: Path
    before: os.stat_result


def glance(analysis: Analysis, cwd: Path) -> Glance | None:
    """The one file that the command line shows, if that is all it does."""
    if len(analysis.segments) != 1 or analysis.problems:
        return None
    segment = analysis.segments[0]
    names = [word.literal for word in segment.reads]
    if segment.name not in READERS or segment.redirections or segment.reasons or len(names) != 1 or names[0] is None:
        return None
    path = real_path(cwd, names[0])
    try:
        before = path.stat()
    except OSError:
        return None
    return Glance(path, before) if stat.S_ISREG(before.st_mode) and before.st_size <= MAX_BYTES else None


def remember(seen: Glance, files: FileMemory) -> None:
    """Record the file as read, unless it changed while the command ran."""
    try:
        with seen.path.open("rb") as file:
            now = os.fstat(file.fileno())
            content = file.read(MAX_BYTES + 1)
    except OSError:
        return  # the file is gone
    same = all(getattr(now, name) == getattr(seen.before, name) for name in ("st_ino", "st_size", "st_mtime_ns"))
    if same and len(content) == now.st_size:
        files.record(seen.path, now, content)
