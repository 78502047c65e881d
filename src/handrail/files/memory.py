"""
Remembers which files an agent has read. Reads are never forgotten; contents are dropped when they take too much memory.

A record is about the whole file, even if only some lines were shown: its hash shows whether the file has changed since.
So reading a part counts as having read the file.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Hashable
from os import stat_result
from pathlib import Path
from threading import Lock

from handrail.records import record

MAX_CONTENT_BYTES = 16 * 1024 * 1024
FINE_STEP_NS = 20_000_000
COARSE_STEP_NS = 2_000_000_000


@record
class ReadRecord:
    """How a file looked when it was read or written. `settled`: a later change cannot have the same time."""

    path: Path
    size: int
    mtime_ns: int
    digest: str
    ctime_ns: int = 0
    settled: bool = True


class FileMemory:
    """The reads of one agent, by absolute real path. Tools use it from several threads."""

    def __init__(self, max_content_bytes: int = MAX_CONTENT_BYTES) -> None:
        self._records: dict[Path, ReadRecord] = {}
        self._parts: dict[Path, set[Hashable]] = {}
        self._contents: OrderedDict[Path, bytes] = OrderedDict()
        self._room = max_content_bytes
        self._max = max_content_bytes
        self._lock = Lock()

    def record(self, path: Path, stat: stat_result, content: bytes) -> ReadRecord:
        """Remember a file with its content. The stat must be from before the content was read."""
        known = _read_record(path, stat, hashlib.sha256(content).hexdigest())
        with self._lock:
            self._records[path] = known
            self._forget_content(path)
            if len(content) <= self._max:
                self._contents[path] = content
                self._room -= len(content)
            while self._room < 0:
                self._room += len(self._contents.popitem(last=False)[1])
        return known

    def note(self, path: Path, stat: stat_result, digest: str) -> ReadRecord:
        """Remember a file by its hash only, for example one that is too big to hold or was just written."""
        return self.add(_read_record(path, stat, digest))

    def add(self, known: ReadRecord) -> ReadRecord:
        """Remember a file as it was looked at."""
        with self._lock:
            before = self._records.get(known.path)
            if before is None or before.digest != known.digest:
                self._forget_content(known.path)
            self._records[known.path] = known
        return known

    def get(self, path: Path) -> ReadRecord | None:
        """The last read of a path by this agent."""
        return self._records.get(path)

    def add_part(self, path: Path, part: Hashable) -> bool:
        """Remember that this part of a file is shown; whether that is the first time."""
        with self._lock:
            parts = self._parts.setdefault(path, set())
            is_new = part not in parts
            parts.add(part)
        return is_new

    def all_reads(self) -> tuple[ReadRecord, ...]:
        """All reads so far, oldest first."""
        with self._lock:
            return tuple(self._records.values())

    def copy(self) -> "FileMemory":
        """A memory of its own that knows the same reads, without their contents."""
        other = FileMemory(self._max)
        with self._lock:
            other._records = dict(self._records)
        return other

    def content(self, path: Path) -> bytes | None:
        """The content that was read, if it is still held."""
        with self._lock:
            held = self._contents.get(path)
            if held is not None:
                self._contents.move_to_end(path)
            return held

    def is_unchanged(self, path: Path, stat: stat_result) -> bool:
        """Whether size and times prove that the file has not changed since it was read. False = compare its hash."""
        known = self._records.get(path)
        return (
            known is not None
            and known.settled
            and (known.size, known.mtime_ns, known.ctime_ns) == (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        )

    def confirm(self, path: Path, stat: stat_result, digest: str) -> bool:
        """Whether the file still has the content that was read; if so, its new times are recorded."""
        known = self._records.get(path)
        if known is None or known.digest != digest:
            return False
        self.note(path, stat, digest)
        return True

    def _forget_content(self, path: Path) -> None:
        self._room += len(self._contents.pop(path, b""))


def _read_record(path: Path, stat: stat_result, digest: str) -> ReadRecord:
    return ReadRecord(path, stat.st_size, stat.st_mtime_ns, digest, stat.st_ctime_ns, is_settled(stat))


def is_settled(stat: stat_result, now_ns: int | None = None) -> bool:
    """
    Whether a later change would show in the file's times.

    File times have a resolution: some milliseconds on Linux, one or two seconds on old file systems. A file that
    changed within the present step can change again without a new time.
    """
    newest = max(stat.st_mtime_ns, stat.st_ctime_ns)
    step = FINE_STEP_NS if newest % 1_000_000 else COARSE_STEP_NS
    return (time.time_ns() if now_ns is None else now_ns) - newest > step
