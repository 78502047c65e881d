"""The sessions that a page may show, and what it asks about each."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from handrail.errors import SessionError
from handrail.files.restore import RestoreResult, go_back
from handrail.files.undo import read as read_journal
from handrail.transcripts.store import ID, TranscriptStore
from handrail.view.changes import FileDiff, change_data, file_diffs
from handrail.view.files import RunFiles, read_run
from handrail.view.model import ChangeData, RunRecord
from handrail.view.stats import TABLES
from handrail.view.stats_files import read_stats

MAX_LINE = 200_000
MAX_ROWS = 100
DAY = 86_400
KEPT_RECORDS = 1


class SessionLibrary:
    """All sessions of a store, or only the given files, each by its id."""

    def __init__(self, store: TranscriptStore, state: Path, only: Mapping[str, Path] | None = None) -> None:
        self._store = store
        self._state = state
        self._only = only or {}
        self._adding_up = threading.Lock()
        self._whole: OrderedDict[tuple[str, int], RunRecord] = OrderedDict()

    def sessions(self, live: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        """What the list shows, the newest first."""
        names = ("id", "title", "cwd", "model", "updated", "size", "outcome", "answers", "dollars")
        return [
            {**{name: getattr(entry, name) for name in names}, "live": entry.id in live}
            for entry in self._store.entries()
        ]

    def stats(self, days: int) -> dict[str, Any]:
        """The sums over the sessions of the last days; 0 = over all. Long tables end where no one reads on."""
        since = time.time() - days * DAY if days else 0.0
        paths = [Path(entry.path) for entry in self._store.entries() if entry.updated >= since]
        with self._adding_up:
            stats, problems = read_stats(paths, self._state, since, lambda _number: None)
        found = stats.as_json()
        return {
            **found,
            **{name: found[name][-MAX_ROWS:] if name == "days" else found[name][:MAX_ROWS] for name in TABLES},
            "problems": problems,
        }

    def files_of(self, session: str) -> RunFiles:
        """The files of a session by its id; SessionError if there is none. No other file can be asked for."""
        if session in self._only:
            return RunFiles(self._only[session], self._state)
        if not ID.fullmatch(session):
            raise SessionError(f"{session!r} is not the id of a session.")
        return RunFiles(self._store.find(session, "/"), self._state)

    def whole(self, session: str) -> RunRecord:
        """The record with nothing cut. The last one is kept, as long as its file does not change."""
        files = self.files_of(session)
        key = (session, files.session.stat().st_size)
        found = self._whole.get(key)
        if found is None:
            found = self._whole[key] = read_run(files, most=0)
            while len(self._whole) > KEPT_RECORDS:
                self._whole.popitem(last=False)
        return found

    def diffs(self, session: str) -> tuple[list[FileDiff], list[ChangeData]]:
        """What a session changed in files: a diff for each, and the single changes."""
        journal = self.files_of(session).journal
        if journal is None or not journal.is_dir():
            return [], []
        history = read_journal(journal)
        return file_diffs(journal, history), change_data(history)

    def undo(self, session: str, number: int, *, force: bool) -> RestoreResult:
        """Bring files back to before a change; UndoError if that cannot be done, and nothing was."""
        journal = self.files_of(session).journal
        assert journal is not None
        return go_back(journal, number, force=force)

    def raw_lines(self, session: str, first: int, count: int) -> tuple[list[str], int]:
        """Lines of the session file, and how many there are."""
        found: list[str] = []
        total = 0
        for line in _lines(self.files_of(session).session):
            if first <= total < first + count:
                found.append(line[:MAX_LINE].decode("utf-8", "replace"))
            total += 1
        return found, total


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield line.rstrip(b"\n")
