"""Names are kept occupied by whoever needs them, and given back by the last."""

import threading
from pathlib import Path

import pytest

from handrail.processes.sandbox import occupy
from handrail.processes.sandbox.occupy import Occupied, placeholder


def test_the_last_one_removes_it(tmp_path: Path) -> None:
    path = tmp_path / ".handrail"
    first, second = Occupied(), Occupied()

    assert first.take([str(path)]) == second.take([str(path)]) == {str(path)}
    second.close()
    assert placeholder(str(path))

    first.close()
    assert not path.exists()


def test_a_file_stands_where_git_would_stumble_over_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "commondir"
    occupied = Occupied()

    assert occupied.take([str(path)]) == frozenset()
    assert path.read_bytes() == b".\n"

    occupied.close()
    assert not path.exists()


def test_what_a_person_put_there_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / ".handrail"
    occupied = Occupied()
    occupied.take([str(path)])

    path.chmod(0o755)
    (path / "settings.json").write_text("{}")
    occupied.close()

    assert (path / "settings.json").read_text() == "{}"


def test_what_a_person_removed_is_made_again_for_the_next_command(tmp_path: Path) -> None:
    path = tmp_path / ".handrail"
    occupied = Occupied()
    occupied.take([str(path)])
    path.rmdir()

    occupied.take([str(path)])

    assert placeholder(str(path))
    occupied.close()


def test_they_go_by_themselves_when_no_command_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occupy, "LINGER", 0.0)
    path = tmp_path / ".handrail"
    occupied = Occupied()
    occupied.take([str(path)])
    occupied.take([str(path)])

    occupied.release()
    assert path.exists()
    occupied.release()
    for thread in threading.enumerate():
        if thread.name == "handrail sandbox tidying":
            thread.join()

    assert not path.exists()
