"""What calls hold while they run: conflict and cover, as a table and as properties."""

import os
from collections.abc import Iterable
from contextlib import chdir
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.dispatch.footprint import NOTHING, READS_WORLD, WRITES_WORLD, Footprint, Place, conflict, footprint
from handrail.tools.access import EXCLUSIVE, SHARED, Access

HERE = Path("/somewhere")


def of(reads: Iterable[str] = (), writes: Iterable[str] = ()) -> Footprint:
    return footprint(Access.of(reads=reads, writes=writes), HERE)


def books(reads: Iterable[str] = (), writes: Iterable[str] = ()) -> Footprint:
    return footprint(Access.bookkeeping(reads=reads, writes=writes), HERE)


PATHS = st.lists(st.sampled_from("abc"), max_size=3).map(lambda parts: "/" + "/".join(parts))
RECORDS = st.lists(st.sampled_from(["net", "tasks"]), max_size=2)
FOOTPRINTS = st.one_of(
    st.just(READS_WORLD),
    st.just(WRITES_WORLD),
    st.builds(of, st.lists(PATHS, max_size=3), st.lists(PATHS, max_size=3)),
    st.builds(books, RECORDS, RECORDS),
)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(READS_WORLD, READS_WORLD, False, id="two readers of anything"),
        pytest.param(READS_WORLD, WRITES_WORLD, True, id="exclusive runs alone"),
        pytest.param(WRITES_WORLD, WRITES_WORLD, True, id="two exclusive ones"),
        pytest.param(NOTHING, WRITES_WORLD, True, id="what touches nothing is still in the world"),
        pytest.param(NOTHING, READS_WORLD, False, id="and in no reader's way"),
        pytest.param(READS_WORLD, of(writes=["/a"]), True, id="a named write disturbs a reader of anything"),
        pytest.param(READS_WORLD, of(reads=["/a"]), False, id="a named read does not"),
        pytest.param(of(writes=["/a"]), of(writes=["/b"]), False, id="edits of two files"),
        pytest.param(of(writes=["/a"]), of(writes=["/a"]), True, id="edits of one file"),
        pytest.param(of(writes=["/a/x"]), of(reads=["/a"]), True, id="a folder covers what is in it"),
        pytest.param(of(writes=["/a"]), of(reads=["/ab"]), False, id="a longer name is another file"),
        pytest.param(of(writes=["/a/"]), of(reads=["//a"]), True, id="slashes do not matter"),
        pytest.param(of(writes=["/b/../a"]), of(reads=["/./a"]), True, id="nor do dots"),
        pytest.param(of(writes=["x"]), of(reads=["/somewhere/x"]), True, id="a relative path starts from the folder"),
        pytest.param(books(writes=["net"]), of(reads=["/net", "net"]), False, id="a record is not a path"),
        pytest.param(books(writes=["net"]), books(reads=["net"]), True, id="but it is itself"),
    ],
)
def test_two_calls_conflict_when_one_writes_what_the_other_touches(
    one: Footprint, other: Footprint, expected: bool
) -> None:
    assert conflict(one, other) is expected


@given(FOOTPRINTS, FOOTPRINTS)
def test_conflict_has_no_direction(one: Footprint, other: Footprint) -> None:
    assert conflict(one, other) == conflict(other, one)


@given(FOOTPRINTS, FOOTPRINTS, FOOTPRINTS)
def test_what_disturbs_a_covered_footprint_disturbs_the_one_that_covers_it(
    a: Footprint, b: Footprint, c: Footprint
) -> None:
    if a.covers(b) and conflict(b, c):
        assert conflict(a, c)


@given(FOOTPRINTS, FOOTPRINTS, FOOTPRINTS)
def test_covering_is_reflexive_and_transitive_and_exclusive_covers_all(
    a: Footprint, b: Footprint, c: Footprint
) -> None:
    assert a.covers(a)
    assert WRITES_WORLD.covers(a)
    assert a.covers(Footprint())
    if a.covers(b) and b.covers(c):
        assert a.covers(c)


def test_a_reader_does_not_cover_a_write() -> None:
    assert not READS_WORLD.covers(of(writes=["/a"]))
    assert not of(reads=["/a"]).covers(of(writes=["/a"]))
    assert of(writes=["/a"]).covers(of(reads=["/a/b"], writes=["/a"]))
    assert not of(writes=["/a/b"]).covers(of(reads=["/a"]))


def test_what_is_removed_is_written_and_what_is_walked_is_read() -> None:
    assert footprint(Access.of(removes="/a", walks="/b"), HERE) == of(reads=["/b"], writes=["/a"])


def test_the_width_goes_before_the_places() -> None:
    assert footprint(Access.of(writes="/a", width="exclusive"), HERE) is WRITES_WORLD
    assert footprint(Access.of(runs="ls", width="shared"), HERE) is READS_WORLD
    assert footprint(Access.of(runs="make"), HERE) is WRITES_WORLD
    assert footprint(Access.of(reaches="https://example.org"), HERE) is WRITES_WORLD
    assert (footprint(SHARED, HERE), footprint(EXCLUSIVE, HERE)) == (READS_WORLD, WRITES_WORLD)


@pytest.mark.proves("R4")
@pytest.mark.parametrize("part", ["a", ".."])
def test_a_path_with_very_many_parts_holds_everything(part: str) -> None:
    deep = f"/{part}" * 5_000

    assert of(writes=[deep]) == WRITES_WORLD
    assert of(reads=[deep]) == READS_WORLD


def test_links_and_the_home_folder_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    assert footprint(Access.of(writes="link/f"), tmp_path) == footprint(Access.of(writes="~/real/f"), HERE)
    assert of(writes=["/../../a"]) == of(writes=["/a"])
    assert of(writes=["nul\0"]).writes


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with links to files, folders, links, above, to nowhere and in a circle."""
    root = tmp_path_factory.mktemp("linked")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "f").write_text("")
    for name, target in {"l": "a", "a/up": "..", "a/b/ll": "../../l", "a/g": "f", "none": "gone", "o": "o"}.items():
        (root / name).symlink_to(target)
    return root


SPELLINGS = st.lists(
    st.sampled_from(["a", "b", "f", "g", "l", "ll", "up", "none", "o", "..", ".", "", "new"]), max_size=8
)


@pytest.mark.proves("R4")
@given(
    st.lists(SPELLINGS, min_size=1, max_size=4), st.sampled_from(["", "a", "l", "a/b"]), st.booleans(), st.booleans()
)
def test_a_place_is_where_the_path_really_leads(
    linked: Path, spellings: list[list[str]], folder: str, absolute: bool, in_folder: bool
) -> None:
    known: dict[str, Place] = {}
    cwd = linked / folder
    with chdir(cwd if in_folder else linked.parent):
        for parts in spellings:
            spelling = "/".join([str(cwd), *parts] if absolute else [".", *parts])
            if ".." in parts and not os.path.lexists(cwd / spelling):
                continue  # realpath goes back from folders that are not there; the system does not
            real = os.path.realpath(cwd / spelling)

            assert footprint(Access.of(reads=spelling), cwd, known).reads == {("/", *real.strip("/").split("/"))}


def test_a_working_folder_that_was_removed_is_a_place_as_before(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with chdir(gone):
        gone.rmdir()
        found = footprint(Access.of(reads="f"), gone)

    assert found == footprint(Access.of(reads=str(gone / "f")), HERE)
