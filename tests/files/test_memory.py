"""What an agent has read is never forgotten."""

import hashlib
from pathlib import Path

from handrail.files.memory import FileMemory, ReadRecord


def test_the_last_read_of_a_path_is_remembered_with_its_fingerprint(tmp_path: Path) -> None:
    memory, path = FileMemory(), tmp_path / "a"
    path.write_bytes(b"one")

    record = memory.record(path, path.stat(), b"one")

    assert record == ReadRecord(path, 3, path.stat().st_mtime_ns, hashlib.sha256(b"one").hexdigest())
    assert memory.get(path) == record
    assert memory.get(tmp_path / "b") is None

    path.write_bytes(b"three")
    again = memory.record(path, path.stat(), b"three")
    assert memory.get(path) == again != record
