"""What calls touch: conflict and cover, as a table and as properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.tools.access import EXCLUSIVE, SHARED, Access, conflict, place

PATHS = st.lists(st.sampled_from("abc"), max_size=3).map(lambda parts: "/" + "/".join(parts))
RESOURCES = PATHS | st.sampled_from(["net", "clipboard"])
ACCESSES = st.one_of(
    st.just(SHARED),
    st.just(EXCLUSIVE),
    st.builds(Access.of, reads=st.lists(RESOURCES, max_size=3), writes=st.lists(RESOURCES, max_size=3)),
)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(SHARED, SHARED, False, id="two readers of anything"),
        pytest.param(SHARED, EXCLUSIVE, True, id="exclusive runs alone"),
        pytest.param(EXCLUSIVE, EXCLUSIVE, True, id="two exclusive ones"),
        pytest.param(Access(), EXCLUSIVE, False, id="what touches nothing is in nobody's way"),
        pytest.param(SHARED, Access.of(writes=["/a"]), True, id="a named write disturbs a reader of anything"),
        pytest.param(SHARED, Access.of(reads=["/a"]), False, id="a named read does not"),
        pytest.param(Access.of(writes=["/a"]), Access.of(writes=["/b"]), False, id="edits of two files"),
        pytest.param(Access.of(writes=["/a"]), Access.of(writes=["/a"]), True, id="edits of one file"),
        pytest.param(Access.of(writes=["/a/x"]), Access.of(reads=["/a"]), True, id="a folder covers what is in it"),
        pytest.param(Access.of(writes=["/a"]), Access.of(reads=["/ab"]), False, id="a longer name is another file"),
        pytest.param(Access.of(writes=["/a/"]), Access.of(reads=["//a"]), True, id="slashes do not matter"),
        pytest.param(Access.of(writes=["/b/../a"]), Access.of(reads=["/./a"]), True, id="nor do dots"),
        pytest.param(Access.of(writes=["net"]), Access.of(reads=["/net"]), False, id="a name is no path"),
        pytest.param(Access.of(writes=["net"]), Access.of(reads=["net"]), True, id="but it is itself"),
    ],
)
def test_two_calls_conflict_when_one_writes_what_the_other_touches(one: Access, other: Access, expected: bool) -> None:
    assert conflict(one, other) is expected


@given(ACCESSES, ACCESSES)
def test_conflict_has_no_direction(one: Access, other: Access) -> None:
    assert conflict(one, other) == conflict(other, one)


@given(ACCESSES, ACCESSES, ACCESSES)
def test_what_disturbs_a_covered_access_disturbs_the_one_that_covers_it(a: Access, b: Access, c: Access) -> None:
    if a.covers(b) and conflict(b, c):
        assert conflict(a, c)


@given(ACCESSES, ACCESSES, ACCESSES)
def test_covering_is_reflexive_and_transitive_and_exclusive_covers_all(a: Access, b: Access, c: Access) -> None:
    assert a.covers(a)
    assert EXCLUSIVE.covers(a)
    assert a.covers(Access())
    if a.covers(b) and b.covers(c):
        assert a.covers(c)


def test_a_reader_does_not_cover_a_write() -> None:
    assert not SHARED.covers(Access.of(writes=["/a"]))
    assert not Access.of(reads=["/a"]).covers(Access.of(writes=["/a"]))
    assert Access.of(writes=["/a"]).covers(Access.of(reads=["/a/b"], writes=["/a"]))
    assert not Access.of(writes=["/a/b"]).covers(Access.of(reads=["/a"]))


def test_the_way_up_ends_at_the_root() -> None:
    assert place("/../../a") == ("/", "a")
    assert Access.shared() is SHARED
    assert Access.exclusive() is EXCLUSIVE
