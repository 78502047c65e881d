"""A store keeps what comes out of a pipe, up to its quota, and counts the rest."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.processes.output_file import OutputFile


class Kept:
    """A store on a file, fed by hand."""

    def __init__(self, path: Path | str, quota: int, flags: int = os.O_RDWR | os.O_CREAT | os.O_TRUNC) -> None:
        self.file = os.open(path, flags, 0o600)
        self.store = OutputFile(self.file, quota)

    def feed(self, data: bytes) -> None:
        os.write(self.store.end, data)

    def end(self) -> tuple[int, int, int]:
        os.close(self.store.end)
        self.store.drain()
        for fd in (self.store.pipe, self.file):
            os.close(fd)
        return self.store.stored, self.store.lost, self.store.trouble


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "file"


@pytest.mark.proves("R6")
@given(
    pieces=st.lists(st.binary(min_size=1, max_size=50), max_size=10),
    quota=st.integers(0, 200),
    taking=st.booleans(),
)
def test_what_fits_is_kept_in_order_and_the_rest_is_counted(
    path: Path, pieces: list[bytes], quota: int, taking: bool
) -> None:
    kept = Kept(path, quota)
    for piece in pieces:
        kept.feed(piece)
        if taking:
            assert kept.store.take()
    whole = b"".join(pieces)

    assert kept.end() == (min(len(whole), quota), max(len(whole) - quota, 0), 0)
    assert path.read_bytes() == whole[:quota]


def test_with_nothing_there_it_waits(path: Path) -> None:
    kept = Kept(path, 100)

    assert kept.store.take()
    assert kept.end() == (0, 0, 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_what_cannot_be_written_is_counted_and_the_writer_goes_on() -> None:
    kept = Kept("/dev/full", 100, os.O_WRONLY)
    kept.feed(b"12345")
    assert kept.store.take()
    kept.feed(b"678")
    assert kept.store.take()

    assert kept.end() == (0, 8, errno.ENOSPC)
