"""Where paths lead, whatever they are."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.files.paths import real_path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("real/file", "real/file"),
        ("link/file", "real/file"),
        ("link/../real/./file", "real/file"),
        ("not/there", "not/there"),
        ("link/new", "real/new"),
        ("loop", "loop"),
        ("loop/x", "loop/x"),
        ("", "."),
        (".", "."),
    ],
)
def test_links_are_followed_as_far_as_there_is_something(tree: Path, path: str, leads_to: str) -> None:
    assert real_path(tree, path) == Path(os.path.realpath(tree)) / leads_to


def test_an_absolute_path_leaves_the_working_folder(tree: Path) -> None:
    assert real_path(tree, "/") == Path("/")


@given(st.text())
def test_any_text_has_a_place(text: str) -> None:
    assert real_path(Path("/nowhere"), text).is_absolute()
