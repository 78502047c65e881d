"""Times of many files, read in one go."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.files import times
from handrail.files.times import FEW, MANY, MISSING, FileTimes


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    found = os.open(tmp_path, os.O_RDONLY)
    yield found
    os.close(found)


@pytest.fixture(params=["the C library's function", "none"])
def statx(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "none":
        monkeypatch.setattr(times, "_statx", lambda: None)


def stamp(path: Path, nanoseconds: int) -> bytes:
    path.touch()
    os.utime(path, ns=(0, nanoseconds))
    return path.name.encode()


@pytest.mark.usefixtures("statx")
@pytest.mark.parametrize("count", [0, 1, FEW, MANY, MANY + FEW + 1])
def test_times_are_read_to_the_nanosecond_for_any_number_of_files(tmp_path: Path, folder: int, count: int) -> None:
    stamps = [at * 1_000_000_007 for at in range(count)]
    names = [stamp(tmp_path / f"f{at}", each) for at, each in enumerate(stamps)]

    seconds, nanoseconds = FileTimes(folder).of(names)

    assert [s * 10**9 + n for s, n in zip(seconds, nanoseconds, strict=True)] == stamps


@pytest.mark.usefixtures("statx")
@pytest.mark.parametrize("more", [0, FEW])
def test_missing_files_are_told_apart_old_ones_are_not_and_links_are_not_followed(
    tmp_path: Path, folder: int, more: int
) -> None:
    old = stamp(tmp_path / "old", -1)
    (tmp_path / "link").symlink_to("old")
    os.utime(tmp_path / "link", ns=(0, 5), follow_symlinks=False)
    reader = FileTimes(folder)
    reader.of([old] * more)  # an earlier answer must not stand for a missing one

    seconds, nanoseconds = reader.of([b"gone", old, b"link", *[old] * more])

    assert seconds[:3] == [MISSING, -1, 0]
    assert nanoseconds[:3] == [0, 999_999_999, 5]
