"""Paths of the search path, with their links followed."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.files import search_path
from handrail.files.search_path import find_program, lies_in, real_path


def make_tree(folder: Path, links: Iterable[tuple[str, str]]) -> None:
    """A few files and folders, and those of these links that are inside, each with the place it leads to."""
    for name in ("a", "a/b", "b", "b (deleted)"):
        (folder / name).mkdir()
    (folder / "a/f").touch()
    for name, target in links:
        link = folder / name
        with suppress(OSError):  # there is something already, or the way to it is broken
            if Path(os.path.realpath(link.parent)).is_relative_to(os.path.realpath(folder)):
                link.symlink_to(target)


@pytest.mark.proves("X16")
@pytest.mark.parametrize(
    "path",
    [
        *("", "a", "a/", "a/.", "a//b", "a/../a/b", "a/f", "a/f/", "a/f/..", "none", "none/../a", "b (deleted)"),
        *("link", "link/", "link/..", "to_file", "to_file/..", "broken", "broken/x", "b/up", "here/here/a", "loop/x"),
    ],
)
def test_a_path_leads_where_the_standard_library_says(path: str, tmp_path: Path) -> None:
    links = {"link": "a/b", "to_file": "a/f", "broken": "none/at/all", "b/up": "..", "here": ".", "loop": "loop"}
    make_tree(tmp_path, links.items())

    assert real_path(f"{tmp_path}/{path}") == os.path.realpath(f"{tmp_path}/{path}")


NAMES = st.sampled_from(("a", "b", "f", "b (deleted)", "..", ".", ""))
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)


def test_no_link_is_made_outside_the_folder_of_a_test(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()

    make_tree(
        folder, [("../x", "a"), ("up", ".."), ("up/y", "a"), ("a/../../z", "a"), ("loop", "loop"), ("loop/x", "a")]
    )

    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.proves("X16")
@given(st.lists(st.tuples(PATHS, PATHS), max_size=5), st.lists(PATHS, min_size=1, max_size=8))
def test_every_path_leads_where_the_standard_library_says(links: list[tuple[str, str]], paths: list[str]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make_tree(folder, ((f"{folder}/{path}", target.lstrip("/") or ".") for path, target in links))

        for path in paths:
            assert real_path(f"{folder}/{path}") == os.path.realpath(f"{folder}/{path}")
            assert lies_in(f"{folder}/{path}", [f"{folder}/a"]) == any(
                f"{spelled(f'{folder}/{path}')}/".startswith(f"{folder}/a/")
                for spelled in (os.path.normpath, os.path.realpath)
            )


def test_a_path_is_found_where_no_descriptor_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tree(tmp_path, [("link", "a/b")])
    monkeypatch.setattr(search_path, "O_PATH", 0)  # as on macOS

    assert real_path(f"{tmp_path}/link") == os.path.realpath(f"{tmp_path}/a/b")


def test_the_first_program_of_that_name_is_found(tmp_path: Path) -> None:
    for name in ("a/tool", "b/tool", "c/tool"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch(mode=0o755 if name != "a/tool" else 0o644)
    (tmp_path / "d" / "tool").mkdir(parents=True)
    path = ":".join(["a", *(f"{tmp_path}/{name}" for name in ("none", "d", "a", "b/", "c"))])

    assert find_program("tool", path) == f"{tmp_path}/b/tool"
    assert find_program("other", path) == ""
