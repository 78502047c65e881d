"""Where handrail keeps its own files."""

import os
import sys
from pathlib import Path

import platformdirs
import pytest

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
