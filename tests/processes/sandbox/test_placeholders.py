"""Names are kept occupied while commands need them, and the last command gives them back."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from handrail.processes.sandbox import placeholders
from handrail.processes.sandbox.placeholder_marks import FOLDER_MODE
from handrail.processes.sandbox.placeholders import Placeholders, placeholder, real_kind, sweep
from tests.processes.sandbox.box import Box
from tests.processes.seen import wait_for

KILLED = """
import asyncio, os, sys
from pathlib import Path
from handrail.processes.spawn import ProcessSpec, start
from tests.processes.sandbox.box import Box, environment

box = Box(Path(sys.argv[1]))
wrapped = box.sandbox().wrap(["sh", "-c", sys.argv[2]], str(box.project))
command = ProcessSpec(wrapped.argv, str(box.project), environment(wrapped, box.project), 60, pass_fds=wrapped.pass_fds)

async def main():
    nothing = os.open(os.devnull, os.O_RDWR)
    await (await start(command, nothing, nothing, nothing)).wait()

asyncio.run(main())
"""


def test_the_last_one_removes_it(tmp_path: Path) -> None:
    path = tmp_path / ".handrail"
    first, second = Placeholders(), Placeholders()

    assert first.take([str(path)]) == second.take([str(path)]) == {str(path)}
    second.close()
    assert placeholder(str(path))

    first.close()
    assert not path.exists()


def test_a_file_stands_where_git_would_stumble_over_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "commondir"
    occupied = Placeholders()

    assert occupied.take([str(path)]) == frozenset()
    assert path.read_bytes() == b".\n"

    occupied.close()
    assert not path.exists()


def test_what_a_person_put_there_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / ".handrail"
    occupied = Placeholders()
    occupied.take([str(path)])

    (path / "settings.json").write_text("{}")
    occupied.close()

    assert (path / "settings.json").read_text() == "{}"
    assert not placeholder(str(path))


def test_what_a_person_removed_is_made_again_for_the_next_command(tmp_path: Path) -> None:
    path = tmp_path / ".handrail"
    occupied = Placeholders()
    occupied.take([str(path)])
    path.rmdir()

    occupied.take([str(path)])

    assert placeholder(str(path))
    occupied.close()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077])
def test_whatever_the_usual_rights_are_they_go(tmp_path: Path, mask: int) -> None:
    occupied, paths = Placeholders(), [tmp_path / ".handrail", tmp_path / "commondir"]
    before = os.umask(mask)
    try:
        occupied.take(map(str, paths))
    finally:
        os.umask(before)

    assert [real_kind(str(path)) for path in paths] == [0, 0]
    occupied.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_program_left_is_swept_away_and_nothing_else(tmp_path: Path) -> None:
    left, used, own, pipe = (tmp_path / name for name in (".claude", ".vscode", ".idea", ".envrc"))
    left.mkdir(FOLDER_MODE)
    left.chmod(FOLDER_MODE)
    own.mkdir()
    os.mkfifo(pipe)
    occupied = Placeholders()
    occupied.take([str(used)])

    sweep(map(str, (left, used, own, pipe, tmp_path / "nothing")))

    assert sorted(tmp_path.iterdir()) == [pipe, own, used]
    occupied.close()


@pytest.mark.needs("bwrap")
def test_a_killed_program_leaves_nothing_and_its_dying_command_creates_nothing(tmp_path: Path) -> None:
    box = Box(Path(os.path.realpath(tmp_path)))
    # asked to end, it tries what it could not do before, for as long as it is given
    deed = "while :; do echo x > .mcp.json && touch src/escaped; done 2> /dev/null"
    command = f"trap '{deed}' TERM; touch src/started; while :; do sleep 0.01; done"
    program = subprocess.Popen([sys.executable, "-c", KILLED, box.root, command], cwd=Path(__file__).parents[3])
    try:
        assert wait_for((box.project / "src" / "started").exists)
        assert placeholder(str(box.project / ".mcp.json"))
    finally:
        program.kill()
        program.wait()

    assert wait_for(lambda: [path.name for path in box.project.iterdir()] == ["src"])
    assert sorted(path.name for path in (box.project / "src").iterdir()) == ["main.py", "started"]


def test_they_go_by_themselves_when_no_command_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placeholders, "LINGER", 0.0)
    path = tmp_path / ".handrail"
    occupied = Placeholders()
    occupied.take([str(path)])
    occupied.take([str(path)])

    occupied.release()
    assert path.exists()
    occupied.release()
    for thread in threading.enumerate():
        if thread.name == "handrail sandbox tidying":
            thread.join()

    assert not path.exists()


def test_a_name_in_a_folder_that_is_gone_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    kept, gone = tmp_path / ".handrail", tmp_path / "gone" / ".git"
    occupied = Placeholders()

    with pytest.raises(FileNotFoundError, match="gone"):
        occupied.take([str(kept), str(gone)])

    occupied.take([str(kept)])
    occupied.release()
    assert wait_for(lambda: not kept.exists())
