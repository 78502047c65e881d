"""What handrail wrote to its state folder goes after a while, and never while it is in use."""

import os
import time
from pathlib import Path

import pytest

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.session.retention import tidy
from handrail.session.state_folder import RUN_FOLDERS, session_store, state_folder

LONG_AGO = time.time() - 40 * 86_400
WITHOUT_SESSION = "4194305-deadbeef"  # no process has an id beyond the largest


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HANDRAIL_STATE_DIR": str(tmp_path / "state")}


def session(env: dict[str, str], name: str) -> Path:
    """A session in which something was said, with a file in each folder that may hold something of it."""
    opened = session_store(env).create("/proj", name)
    opened.writer.add_message(UserMessage((Text("hello"),)))
    opened.writer.close()
    for folder in ("undo", *RUN_FOLDERS):
        keep(env, folder, name)
    return opened.path


def keep(env: dict[str, str], folder: str, name: str) -> Path:
    place = state_folder(env) / folder / name / "output"
    place.mkdir(parents=True)
    (place / "a.txt").write_text("x")
    return place


def age(path: Path) -> None:
    """Make it look as if nobody had touched it for a long time."""
    for each in (path, *path.rglob("*")):
        os.utime(each, (LONG_AGO, LONG_AGO))


def left(env: dict[str, str]) -> set[str]:
    state = state_folder(env)
    return {f"{path.parent.name}/{path.name}" for name in ("undo", *RUN_FOLDERS) for path in (state / name).glob("*")}


def test_a_session_goes_with_all_that_belongs_to_it(env: dict[str, str]) -> None:
    old, new = session(env, "old"), session(env, "new")
    age(state_folder(env))
    os.utime(new)

    tidy(env)

    assert (old.exists(), new.exists()) == (False, True)
    assert left(env) == {"undo/new", *(f"{name}/new" for name in RUN_FOLDERS)}


def test_a_session_that_is_deleted_by_hand_takes_it_along(env: dict[str, str]) -> None:
    session_store(env).remove(session(env, "one"))

    assert left(env) == set()


def test_what_runs_without_a_session_left_goes_when_it_is_old(env: dict[str, str]) -> None:
    for name in RUN_FOLDERS:
        age(keep(env, name, WITHOUT_SESSION).parent)
        keep(env, name, "4194306-new")

    tidy(env)

    assert left(env) == {f"{name}/4194306-new" for name in RUN_FOLDERS}


def test_nothing_that_is_in_use_goes_even_if_nothing_is_kept(env: dict[str, str]) -> None:
    opened = session_store(env).create("/proj", "mine")
    opened.writer.add_message(UserMessage((Text("hello"),)))
    keep(env, "runs", "mine")
    keep(env, "runs", f"{os.getpid()}-00000000")
    keep(env, "runs", WITHOUT_SESSION)

    tidy(env, 0)
    opened.writer.close()

    assert left(env) == {"runs/mine", f"runs/{os.getpid()}-00000000"}


def test_it_is_done_once_a_day_and_not_for_long(env: dict[str, str]) -> None:
    age(keep(env, "runs", WITHOUT_SESSION).parent)
    clock = iter((0.0, 1.0, 1.0, 1.0, 1.0, 1.0))

    tidy(env, now=lambda: next(clock))
    assert left(env) == {f"runs/{WITHOUT_SESSION}"}

    tidy(env)
    assert left(env) == set()

    age(keep(env, "runs", WITHOUT_SESSION).parent)
    tidy(env)
    assert left(env) == {f"runs/{WITHOUT_SESSION}"}
