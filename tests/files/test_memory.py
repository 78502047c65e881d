"""What an agent has read is never forgotten; whether it changed is told by time where that is proof, else by hash."""

import hashlib
import os
from pathlib import Path

import pytest

from handrail.files.memory import FileMemory, ReadRecord, is_settled


def aged(path: Path, content: bytes) -> Path:
    """A file that was changed long enough ago for its time to be proof; only its owner can make the change time old."""
    path.write_bytes(content)
    return path


def old(path: Path) -> os.stat_result:
    """The stat of the file as if it had been written an hour ago."""
    found = path.stat()
    hour = 3600 * 10**9 - 123_457
    fields = list(found)
    return os.stat_result(fields, {"st_mtime_ns": found.st_mtime_ns - hour, "st_ctime_ns": found.st_ctime_ns - hour})


def test_the_last_read_of_a_path_is_remembered_with_its_fingerprint(tmp_path: Path) -> None:
    memory, path = FileMemory(), aged(tmp_path / "a", b"one")
    stat = old(path)

    record = memory.record(path, stat, b"one")

    assert record == ReadRecord(
        path, 3, stat.st_mtime_ns, hashlib.sha256(b"one").hexdigest(), stat.st_ctime_ns, settled=True
    )
    assert memory.get(path) == record
    assert memory.get(tmp_path / "b") is None

    path.write_bytes(b"three")
    again = memory.record(path, path.stat(), b"three")
    assert memory.get(path) == again != record


@pytest.mark.proves("J2")
def test_equal_size_and_times_are_proof_and_anything_else_is_left_to_the_hash(tmp_path: Path) -> None:
    memory, path = FileMemory(), aged(tmp_path / "a", b"one")
    stat = old(path)
    memory.record(path, stat, b"one")

    assert memory.is_unchanged(path, stat)
    assert not memory.is_unchanged(path, path.stat()), "touched"
    assert not memory.is_unchanged(tmp_path / "b", stat), "never read"

    digest = hashlib.sha256(b"one").hexdigest()
    assert not memory.confirm(path, path.stat(), hashlib.sha256(b"two").hexdigest())
    assert memory.confirm(path, path.stat(), digest)
    assert memory.get(path) == ReadRecord(
        path, 3, path.stat().st_mtime_ns, digest, path.stat().st_ctime_ns, is_settled(path.stat())
    )


@pytest.mark.proves("J2")
def test_a_file_that_was_read_in_the_moment_it_was_written_has_to_be_hashed(tmp_path: Path) -> None:
    memory, path = FileMemory(), aged(tmp_path / "a", b"one")
    found = path.stat()

    memory.record(path, found, b"one")

    assert not memory.is_unchanged(path, found)


@pytest.mark.parametrize(
    ("newest", "after", "proof"),
    [
        pytest.param(1_700_000_000_123_456_789, 15_000_000, False, id="within a tick of Linux"),
        pytest.param(1_700_000_000_123_456_789, 25_000_000, True, id="after it"),
        pytest.param(1_700_000_000_000_000_000, 60_000_000, False, id="whole seconds: an old file system"),
        pytest.param(1_700_000_000_000_000_000, 2_100_000_000, True, id="and two seconds later"),
        pytest.param(1_700_000_000_123_456_789, -5, False, id="a time in the future proves nothing"),
    ],
)
def test_how_long_a_time_proves_nothing(tmp_path: Path, newest: int, after: int, proof: bool) -> None:
    stat = os.stat_result(list(tmp_path.stat()), {"st_mtime_ns": newest, "st_ctime_ns": newest})

    assert is_settled(stat, newest + after) is proof


@pytest.mark.proves("J7")
def test_contents_are_forgotten_when_there_are_too_many_but_not_that_they_were_read(tmp_path: Path) -> None:
    memory = FileMemory(max_content_bytes=10)
    paths = [aged(tmp_path / name, name.encode() * 4) for name in "abc"]
    for path in paths:
        memory.record(path, path.stat(), path.read_bytes())
        memory.content(paths[0])  # the one that is used stays

    assert [memory.content(path) for path in paths] == [b"aaaa", None, b"cccc"]
    assert all(memory.get(path) for path in paths)

    huge = aged(tmp_path / "huge", b"x" * 11)
    memory.record(huge, huge.stat(), huge.read_bytes())
    assert memory.content(huge) is None
    assert memory.content(paths[0]) == b"aaaa"
    assert memory.get(huge)


@pytest.mark.proves("J5")
def test_a_write_replaces_what_was_remembered(tmp_path: Path) -> None:
    memory, path = FileMemory(), aged(tmp_path / "a", b"one")
    memory.record(path, path.stat(), b"one")

    path.write_bytes(b"two")
    memory.note(path, path.stat(), hashlib.sha256(b"two").hexdigest())

    assert memory.content(path) is None
    assert memory.confirm(path, path.stat(), hashlib.sha256(b"two").hexdigest())
