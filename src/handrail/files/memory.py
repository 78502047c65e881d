"""What an agent has read. Having read a file is never forgotten."""

import hashlib
from os import stat_result
from pathlib import Path

from handrail.records import record


@record
class ReadRecord:
    """How a file looked when it was read."""

    path: Path
    size: int
    mtime_ns: int
    digest: str


class FileMemory:
    """The reads of one agent, by absolute path."""

    def __init__(self) -> None:
        self._records: dict[Path, ReadRecord] = {}

    def record(self, path: Path, stat: stat_result, content: bytes) -> ReadRecord:
        """Remember that this content was seen at this path."""
        record = ReadRecord(path, stat.st_size, stat.st_mtime_ns, hashlib.sha256(content).hexdigest())
        self._records[path] = record
        return record

    def get(self, path: Path) -> ReadRecord | None:
        """The last read of a path by this agent."""
        return self._records.get(path)
