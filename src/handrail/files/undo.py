"""
The undo journal of a session: it keeps the old content of every file before the file changes.

    index.jsonl     a header, then lines that are only ever added
                      point     a named place in the journal, such as the id of a user's message
                      begin     a change of a file begins: its path, its old state, the name of the temporary file
                      ready     the new content is complete; the change itself follows
                      finished  a change in place is complete
                      void      the change did not happen
                      folder    a folder is about to be made or removed
    content/<hash>  old contents, each stored once

Nothing is on disk before the first change. The folder is private, never inside a project, and does not use git. If the
process is killed, the journal knows every change that may have happened; the content of a file shows whether it did.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from handrail.errors import UndoError
from handrail.files.copying import copy
from handrail.files.journal import FileState, Note
from handrail.files.open_journals import OpenMarker
from handrail.files.private_folder import make_private_folder
from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy("shutil")  # with its archive formats 4 ms, and only old journals need it

FORMAT = "handrail undo"
VERSION = 1
INDEX = "index.jsonl"
MAX_BYTES = 1024 * 1024 * 1024
KEEP_SECONDS = 30 * 24 * 3600.0


@record
class UndoEntry:
    """One change, numbered from 1 in the order in which changes began."""

    number: int
    key: str
    at: float
    path: str
    old: FileState | None
    new: FileState | None
    tool: str
    call: str
    point: str
    back: int
    """The number that a restoring change goes back to; 0 = an ordinary change."""
    folder: bool = False
    ready: bool = False
    void: bool = False
    torn: bool = False
    """It was written in place and may have stopped half-way."""
    temp: str = ""
    process: int = 0


@record
class UndoHistory:
    """The content of a journal."""

    session: str
    cwd: str
    entries: tuple[UndoEntry, ...]
    points: dict[str, int]
    """The number of the first change after each named point."""

    @property
    def changes(self) -> tuple[UndoEntry, ...]:
        """The changes that may have happened."""
        return tuple(entry for entry in self.entries if entry.ready and not entry.void)


class Undo:
    """
    Keeps the old content of files that one session changes. Tools use it from several threads.

    `limit`: bytes of content; beyond it the oldest is dropped. Journals not used for a month are removed.
    """

    def __init__(
        self, folder: Path, cwd: str = "", *, limit: int = MAX_BYTES, keep_seconds: float = KEEP_SECONDS, back: int = 0
    ) -> None:
        self.folder = folder
        self._cwd = cwd
        self._limit = limit
        self._keep_seconds = keep_seconds
        self._back = back
        self._point = ""
        self._open = False
        self._lock = Lock()

    def point(self, name: str) -> None:
        """Set a named point; it is written with the next change."""
        self._point = name

    # The methods of UndoJournal

    def begin(self, path: str, old: FileState | None, source: int | None, temp: str, note: Note) -> tuple[str, str]:
        key = os.urandom(8).hex()
        with self._lock:
            self._prepare()
            notice = self.keep(old, source) if old is not None and source is not None else ""
            self._add(
                {"begin": key, "path": path, "old": _state_to_json(old), "temp": temp, "process": os.getpid()}
                | self._about(note)
            )
        return key, notice

    def keep(self, old: FileState, source: int) -> str:
        place = self._content(old.digest)
        if place.exists():
            return ""
        if old.size > self._limit:
            return (
                f"The file was too large for the undo journal ({old.size:,} bytes; {self._limit:,} are kept), so this "
                "change cannot be undone."
            )
        dropped = self._make_room(old.size)
        half = place.with_name(f"half-{os.urandom(6).hex()}")
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            copy(source, descriptor, old.size)
            half.rename(place)
        except BaseException:
            with suppress(OSError):
                half.unlink()
            raise
        finally:
            os.close(descriptor)
        return f"The undo journal is full: what {dropped} earlier changes did away with was dropped." if dropped else ""

    def takes(self, old: FileState, device: int) -> bool:
        with self._lock:
            self._prepare()
            content = self.folder / "content"
            if old.size > self._limit or content.stat().st_dev != device or self._content(old.digest).exists():
                return False
            return not self._make_room(old.size)  # a copy reports what was dropped

    def take(self, old: FileState, folder: int, name: str) -> None:
        place = self._content(old.digest)
        os.rename(name, place, src_dir_fd=folder)
        place.chmod(0o600)

    def ready(self, key: str, new: FileState | None, *, in_place: bool = False) -> None:
        line: dict[str, Any] = {"ready": key, "new": _state_to_json(new)}
        self._add(line | {"in_place": True} if in_place else line)

    def finish(self, key: str) -> None:
        self._add({"finished": key})

    def void(self, key: str) -> None:
        self._add({"void": key})

    def folder_changed(self, path: str, note: Note, *, made: bool) -> None:
        with self._lock:
            self._prepare()
            self._add({"folder": path, "made": made} | self._about(note))

    def spool(self) -> int:
        path = self.folder / f"spool-{os.urandom(6).hex()}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        path.unlink()
        return descriptor

    def open_content(self, digest: str) -> int:
        return os.open(self._content(digest), os.O_RDONLY | os.O_CLOEXEC)

    # Internals

    def _content(self, digest: str) -> Path:
        return self.folder / "content" / digest

    def _about(self, note: Note) -> dict[str, Any]:
        about = {"tool": note.tool, "call": note.call, "at": time.time()}
        return about | {"back": self._back} if self._back else about

    def _prepare(self) -> None:
        """Create the folder and its first line, or continue an existing journal."""
        if not self._open:
            make_private_folder(self.folder / "content")
            for folder in (self.folder.parent, self.folder):
                folder.chmod(0o700)
            OpenMarker(self.folder, self)
            self._start()
            self._open = True
        if self._point:
            point, self._point = self._point, ""
            self._add({"point": point})

    def _start(self) -> None:
        """Write the first line of a new journal, or end a line that a kill cut off."""
        index = self.folder / INDEX
        data = index.read_bytes() if index.exists() else b""
        if data and not data.endswith(b"\n"):
            self._append(b"\n")
        if data and read(self.folder).session:  # refuses what a newer version wrote
            return
        forget_old(self.folder.parent, self._keep_seconds)
        self._add(
            {"format": FORMAT, "version": VERSION, "session": self.folder.name, "cwd": self._cwd, "at": time.time()}
        )

    def _add(self, line: dict[str, Any]) -> None:
        self._append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _append(self, data: bytes) -> None:
        """Write a line by one system call, so that lines of several processes do not mix."""
        descriptor = os.open(self.folder / INDEX, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def _make_room(self, size: int) -> int:
        """Drop the oldest contents until there is room, and return how many."""
        stats = [(path, path.stat()) for path in (self.folder / "content").iterdir()]
        found = sorted((stat.st_ctime_ns, stat.st_size, path) for path, stat in stats)
        used = sum(each for _, each, _ in found)
        dropped = 0
        for _, each, path in found:
            if used + size <= self._limit:
                break
            path.unlink(missing_ok=True)
            used -= each
            dropped += 1
        return dropped


def forget_old(parent: Path, seconds: float) -> None:
    """Remove journals that were not used for `seconds`."""
    for folder in parent.iterdir():
        with suppress(OSError):
            if (folder / INDEX).stat().st_mtime < time.time() - seconds:
                shutil.rmtree(folder)


def read(folder: Path) -> UndoHistory:
    """
    Read a journal. A line that a kill cut off is skipped.

    Raises:
        UndoError: there is none, or a newer handrail wrote it.
    """
    try:
        lines = list(_lines(folder / INDEX))
    except OSError as error:
        raise UndoError(
            f"There is no undo journal in {str(folder)!r} ({error.strerror}). `handrail sessions list` shows the "
            "sessions."
        ) from error
    if not lines:
        return UndoHistory("", "", (), {})  # killed before its first line was complete
    head = lines[0]
    if head.get("format") != FORMAT:
        raise UndoError(f"{str(folder / INDEX)!r} is not an undo journal. Move it away, or name another session.")
    if head.get("version") != VERSION:
        raise UndoError(
            f"{str(folder / INDEX)!r} has version {head.get('version')!r}, and this handrail knows {VERSION}. Use the "
            "handrail that wrote it."
        )
    points: dict[str, int] = {}
    begun: list[dict[str, Any]] = []
    later: dict[str, dict[str, Any]] = {}
    point = ""
    for line in lines[1:]:
        if "point" in line:
            point = line["point"]
            points[point] = len(begun) + 1
        elif "begin" in line or "folder" in line:
            begun.append(line | {"in": point})
        for word in ("ready", "finished", "void"):
            if word in line:
                later.setdefault(line[word], {})[word] = line
    entries = tuple(_entry(number, line, later) for number, line in enumerate(begun, 1))
    return UndoHistory(head.get("session", folder.name), head.get("cwd", ""), entries, points)


def _lines(index: Path) -> Iterator[dict[str, Any]]:
    for line in index.read_bytes().split(b"\n"):
        with suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                yield value


def _entry(number: int, line: dict[str, Any], later: dict[str, dict[str, Any]]) -> UndoEntry:
    folder = "folder" in line
    key = line.get("begin", "")
    after = {"ready": {}} if folder else later.get(key, {})
    ready = after.get("ready", {})
    return UndoEntry(
        number=number,
        key=key,
        at=line["at"],
        path=line["folder"] if folder else line["path"],
        old=None if folder else _state_from_json(line["old"]),
        new=_state_from_json(ready.get("new")),
        tool=line["tool"],
        call=line["call"],
        point=line["in"],
        back=line.get("back", 0),
        folder=folder,
        ready="ready" in after,
        void="void" in after,
        torn="in_place" in ready and "finished" not in after,
        temp=line.get("temp", ""),
        process=line.get("process", 0),
    )


def _state_to_json(state: FileState | None) -> dict[str, Any] | None:
    return None if state is None else {"digest": state.digest, "size": state.size, "mode": state.mode}


def _state_from_json(plain: dict[str, Any] | None) -> FileState | None:
    return FileState(plain["digest"], plain["size"], plain["mode"]) if plain else None
