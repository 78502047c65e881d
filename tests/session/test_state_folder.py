"""Where handrail keeps its own files."""

import os
import sys
from pathlib import Path

import platformdirs
import pytest

from handrail.errors import HandrailError
from handrail.session.services import default_services
from handrail.session.state_folder import result_store, state_folder


def test_the_state_folder_is_the_usual_one_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state_folder(os.environ) == platformdirs.user_state_path("handrail", appauthor=False)

    monkeypatch.setenv("XDG_STATE_HOME", "/chosen")
    assert state_folder(os.environ) == platformdirs.user_state_path("handrail", appauthor=False)


@pytest.mark.skipif(sys.platform != "linux", reason="the desktop's variables are Linux's")
def test_a_state_folder_of_the_desktop_that_is_relative_is_none() -> None:
    assert state_folder({"XDG_STATE_HOME": "here"}) == state_folder({})


def test_the_state_folder_can_be_moved() -> None:
    assert state_folder({"HANDRAIL_STATE_DIR": "/else/where"}) == Path("/else/where")
    assert state_folder({"HANDRAIL_STATE_DIR": "~/mine"}) == Path.home() / "mine"


def test_two_runs_share_no_folder(tmp_path: Path) -> None:
    variables = {"HANDRAIL_STATE_DIR": str(tmp_path)}

    assert result_store(variables).folder != result_store(variables).folder
    assert default_services(variables).state != default_services(variables).state
    assert list(tmp_path.iterdir()) == []


def folder_of(path: Path, mode: int) -> Path:
    path.mkdir(parents=True)
    path.chmod(mode)
    return path


@pytest.mark.proves("X23")
def test_a_state_folder_that_others_make_after_the_first_look_is_refused(tmp_path: Path) -> None:
    variables = {"HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    assert state_folder(variables) == tmp_path / "state"

    theirs = folder_of(tmp_path / "state", 0o777)
    with pytest.raises(HandrailError, match=r"can be written by others \(mode 777\)"):
        state_folder(variables)

    theirs.chmod(0o700)
    assert state_folder(variables) == theirs
    theirs.chmod(0o770)
    with pytest.raises(HandrailError, match=r"can be written by others \(mode 770\)"):
        state_folder(variables)


@pytest.mark.proves("X23")
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_state_folder_that_others_could_replace_is_refused(tmp_path: Path, below: str, *, is_there: bool) -> None:
    state = folder_of(tmp_path / "shared", 0o777) / below / "state"
    if is_there:
        folder_of(state, 0o700)

    with pytest.raises(HandrailError, match=r"lies below .*shared', which others can write \(mode 777\)"):
        state_folder({"HANDRAIL_STATE_DIR": str(state)})
    assert state.exists() == is_there


@pytest.mark.proves("X23")
def test_a_state_folder_behind_a_link_counts_where_it_lies_and_where_the_link_lies(tmp_path: Path) -> None:
    shared, private = folder_of(tmp_path / "shared", 0o777), folder_of(tmp_path / "private", 0o700)
    (shared / "out").symlink_to(folder_of(private / "state", 0o700))
    (private / "in").symlink_to(folder_of(shared / "state", 0o700))

    for state in (shared / "out", private / "in"):
        with pytest.raises(HandrailError, match="shared', which others can write"):
            state_folder({"HANDRAIL_STATE_DIR": str(state)})


@pytest.mark.proves("X23")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_a_link_of_another_user_is_not_followed_to_what_is_trusted(tmp_path: Path) -> None:
    shared = folder_of(tmp_path / "shared", 0o1777)
    (shared / "state").symlink_to(folder_of(tmp_path / "project" / "planted", 0o755))
    os.chown(shared / "state", 12345, 12345, follow_symlinks=False)

    with pytest.raises(HandrailError, match="belongs to another user"):
        state_folder({"HANDRAIL_STATE_DIR": str(shared / "state")})


@pytest.mark.proves("X23")
def test_what_others_can_write_inside_counts_if_they_can_enter(tmp_path: Path) -> None:
    state = folder_of(tmp_path / "state", 0o755)
    folder_of(state / "trust", 0o777)

    with pytest.raises(HandrailError, match="holds 'trust', which others can write or own"):
        state_folder({"HANDRAIL_STATE_DIR": str(state)})

    state.chmod(0o700)
    assert state_folder({"HANDRAIL_STATE_DIR": str(state)}) == state


@pytest.mark.parametrize("mode", [0o1777, 0o775, 0o755])
def test_a_state_folder_in_a_temporary_folder_or_one_of_the_own_group_is_used(tmp_path: Path, mode: int) -> None:
    state = folder_of(tmp_path / "above", mode) / "state"

    assert state_folder({"HANDRAIL_STATE_DIR": str(state)}) == state
    assert state_folder({"HANDRAIL_STATE_DIR": str(folder_of(state, 0o700))}) == state
