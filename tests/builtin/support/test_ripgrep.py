"""The newest of many files, listed piece by piece."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.services import ToolServices
from handrail.builtin.support.ripgrep import Folder, sort_names
from tests.builtin.conftest import made

SECOND = 1_000_000_000
TIMES = [0, 1, SECOND, SECOND + 1, -1, -SECOND]
NAMES = [f"./f{at:02}".encode() for at in range(60)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    """A folder of files, most of which have the time of others; every tenth is missing."""
    top = tmp_path_factory.mktemp("files")
    for at, name in enumerate(NAMES):
        if at % 10:
            path = top / os.fsdecode(name)
            path.touch()
            os.utime(path, ns=(0, TIMES[at % len(TIMES)]))
    with Folder(os.open(top, os.O_RDONLY), str(top)) as opened:
        yield opened


@pytest.fixture(scope="module")
def by_time(tmp_path_factory: pytest.TempPathFactory) -> ToolServices:
    return made(tmp_path_factory.mktemp("home"))


@given(lists=st.lists(st.sets(st.sampled_from(NAMES)).map(sorted), max_size=8), count=st.integers(1, 12))
def test_the_newest_are_chosen_as_if_all_were_sorted_at_once(
    folder: Folder, by_time: ToolServices, lists: list[list[bytes]], count: int
) -> None:
    existing = [name for names in lists for name in names if NAMES.index(name) % 10]
    newest = sorted(existing, key=lambda name: (-TIMES[NAMES.index(name) % len(TIMES)], name))

    assert sort_names(folder, lists, by_time, count) == (newest[:count], len(existing))
    by_name = replace(by_time, sorts_by_name=True)
    assert sort_names(folder, lists, by_name, count) == (sorted(existing)[:count], len(existing))
