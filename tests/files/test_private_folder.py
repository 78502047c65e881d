"""Folders of the owner alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.files.private_folder import make_private_folder


@pytest.fixture(autouse=True)
def careless_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_everything_that_was_missing_is_for_the_owner_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    assert make_private_folder(tmp_path / "a" / "b" / "c") == tmp_path / "a" / "b" / "c"
    make_private_folder(tmp_path / "a" / "b" / "c")

    assert [mode(tmp_path / name) for name in ("", "a", "a/b", "a/b/c")] == [0o755, 0o700, 0o700, 0o700]


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")

    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "a")
