"""Access: one declaration, kept as it was spelled."""

from pathlib import Path

import pytest

from handrail.tools.access import EXCLUSIVE, SHARED, Access


def test_paths_are_kept_as_they_were_spelled() -> None:
    made = Access.of(reads="~/a", writes=["b/../c", Path("/d")], removes=(), walks={"."})

    assert (made.reads, made.writes, made.removes, made.walks) == (("~/a",), ("b/../c", "/d"), (), (".",))
    assert made.files == ("~/a", "b/../c", "/d")


def test_nothing_declared_is_something_else_than_to_touch_nothing() -> None:
    assert Access.unknown(width="shared") == SHARED
    assert Access.unknown() == EXCLUSIVE
    assert not SHARED.declared
    assert not EXCLUSIVE.declared
    assert Access.of().declared
    assert Access.of().as_json() == {"declared": True, "width": "named"}
    assert EXCLUSIVE.as_json() == {}


def test_only_files_can_be_changed() -> None:
    assert Access.of(writes="a").changes_files
    assert Access.of(removes="a").changes_files
    assert not Access.of(reads="a", walks=".").changes_files
    assert not Access.bookkeeping(writes="tasks").changes_files
    assert Access.bookkeeping(writes="tasks").files == ()


@pytest.mark.parametrize(
    "access",
    [
        Access.of(reads=["a", "b"], writes="c", removes="d", walks="e", reaches="https://example.org"),
        Access.of(runs=""),
        Access.of(runs="Get-Item x", shell="powershell"),
        Access.of(walks=".", filtered=True),
        Access.bookkeeping(reads="tasks"),
        Access.of(),
        EXCLUSIVE,
    ],
)
def test_a_declaration_can_be_written_down_and_read_again(access: Access) -> None:
    assert Access.from_json(access.as_json()) == access
