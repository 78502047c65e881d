"""Everything that was changed can be brought back, exactly, whatever happened in between."""

import hashlib
import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from handrail.errors import UndoError
from handrail.files.journal import Note
from handrail.files.paths import locate
from handrail.files.replace import TargetFile
from handrail.files.restore import go_back, latest, number_of
from handrail.files.undo import INDEX, Undo, read

ROOT = Path(__file__).resolve().parents[2]


def put(path: Path, content: bytes, undo: Undo, call: str = "call-1") -> str:
    with TargetFile(locate(str(path), "/")) as target:
        old = target.digest() if target.exists else ""
        return target.write(lambda: iter((content,)), old, undo, Note("Write", call)).notice


def remove(path: Path, undo: Undo) -> None:
    with TargetFile(locate(str(path), "/")) as target:
        target.remove(target.digest(), undo, Note("Write", "call-1"))


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def undo(tmp_path: Path) -> Undo:
    return Undo(tmp_path / "state" / "undo" / "session", "/home/me")


def test_nothing_is_on_disk_before_the_first_change_and_then_only_for_its_owner(project: Path, undo: Undo) -> None:
    undo.point("message-1")
    assert not undo.folder.parent.exists()

    (project / "a").write_bytes(b"secret")
    put(project / "a", b"new", undo)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (undo.folder, *undo.folder.rglob("*"))}
    assert modes == {
        "session": 0o700,
        "content": 0o700,
        INDEX: 0o600,
        hashlib.sha256(b"secret").hexdigest(): 0o600,
    }


def test_going_back_restores_what_was_changed_removes_what_was_made_and_brings_back_what_was_removed(
    project: Path, undo: Undo
) -> None:
    (project / "changed").write_bytes(b"one")
    (project / "removed").write_bytes(b"two")
    (project / "removed").chmod(0o640)
    before = tree(project)

    put(project / "changed", b"three", undo)
    put(project / "new" / "deep" / "file", b"four", undo)
    remove(project / "removed", undo)
    put(project / "changed", b"five", undo)
    after = tree(project)
    done = go_back(undo.folder, 1)

    assert tree(project) == before
    assert stat.S_IMODE((project / "removed").stat().st_mode) == 0o640
    assert set(done.restored) == {str(project / "changed"), str(project / "removed")}
    assert set(done.removed) == {str(project / "new/deep/file"), str(project / "new/deep"), str(project / "new")}

    number = next(entry.number for entry in read(undo.folder).entries if entry.back)
    go_back(undo.folder, number)
    assert tree(project) == after, "going back is a change like any other"


def test_points_have_names_and_a_plain_undo_takes_back_one_prompt_after_the_other(project: Path, undo: Undo) -> None:
    file = project / "file"
    undo.point("message-1")
    put(file, b"one", undo, "call-1")
    put(file, b"two", undo, "call-2")
    undo.point("message-2")
    undo.point("message-3")
    put(file, b"three", undo, "call-3")
    put(file, b"four", undo, "call-4")

    history = read(undo.folder)
    assert history.points == {"message-1": 1, "message-3": 3}
    assert (number_of(history, "message-3"), number_of(history, "2")) == (3, 2)
    with pytest.raises(UndoError, match=r"'message-2' is not a point of session session\. `handrail undo --list`"):
        number_of(history, "message-2")

    assert latest(history) == 3
    go_back(undo.folder, 3)
    assert file.read_bytes() == b"two"
    assert latest(read(undo.folder)) == 1
    go_back(undo.folder, 1)
    assert not file.exists()
    assert latest(read(undo.folder)) == 0


def test_without_points_a_plain_undo_takes_back_one_call(project: Path, undo: Undo) -> None:
    put(project / "new" / "one", b"1", undo, "call-1")
    put(project / "new" / "two", b"2", undo, "call-2")

    go_back(undo.folder, latest(read(undo.folder)))
    assert tree(project) == {"new": None, "new/one": b"1"}
    go_back(undo.folder, latest(read(undo.folder)))
    assert tree(project) == {}


@pytest.mark.proves("J6")
def test_a_file_that_somebody_changed_since_is_left_alone_and_so_is_everything_else(project: Path, undo: Undo) -> None:
    for name in ("one", "two"):
        (project / name).write_bytes(b"old")
        put(project / name, b"new", undo)
    (project / "two").write_bytes(b"theirs")

    with pytest.raises(UndoError, match=r"Nothing was done: \S+/two was changed since\. Look at it, and use --force"):
        go_back(undo.folder, 1)
    assert tree(project) == {"one": b"new", "two": b"theirs"}

    go_back(undo.folder, 1, force=True)
    assert tree(project) == {"one": b"old", "two": b"old"}
    go_back(undo.folder, 3)
    assert tree(project) == {"one": b"new", "two": b"theirs"}, "what was forced away is kept too"


def test_a_file_that_became_a_link_is_not_followed(project: Path, undo: Undo, tmp_path: Path) -> None:
    (project / "file").write_bytes(b"old")
    put(project / "file", b"new", undo)
    (tmp_path / "elsewhere").write_bytes(b"new")
    (project / "file").unlink()
    (project / "file").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UndoError, match="is a link now"):
        go_back(undo.folder, 1, force=True)
    assert (tmp_path / "elsewhere").read_bytes() == b"new"


def test_a_folder_that_others_use_too_stays(project: Path, undo: Undo) -> None:
    put(project / "new" / "ours", b"1", undo)
    (project / "new" / "theirs").write_bytes(b"2")

    go_back(undo.folder, 1)

    assert tree(project) == {"new": None, "new/theirs": b"2"}


def test_equal_contents_are_kept_once(project: Path, undo: Undo) -> None:
    for name in "abc":
        (project / name).write_bytes(b"same")
        put(project / name, b"new", undo)

    assert len(list((undo.folder / "content").iterdir())) == 1


def test_what_is_kept_is_bounded_and_the_oldest_goes_first_with_a_notice(project: Path, tmp_path: Path) -> None:
    undo = Undo(tmp_path / "state" / "undo" / "session", limit=10)
    file = project / "file"
    file.write_bytes(b"1" * 6)

    assert put(file, b"2" * 6, undo) == ""
    assert put(file, b"3" * 12, undo) == "The undo journal is full: what 1 earlier changes did away with was dropped."
    assert "too large for the undo journal (12 bytes; 10 are kept)" in put(file, b"4", undo)

    with pytest.raises(UndoError, match="held something that is no longer kept"):
        go_back(undo.folder, 1, force=True)
    with pytest.raises(UndoError, match="held something that is no longer kept"):
        go_back(undo.folder, 3)
    go_back(undo.folder, 2)
    assert file.read_bytes() == b"2" * 6


def test_a_damaged_copy_is_not_taken_for_the_content(project: Path, undo: Undo) -> None:
    (project / "file").write_bytes(b"old")
    put(project / "file", b"new", undo)
    next((undo.folder / "content").iterdir()).write_bytes(b"OLD")

    with pytest.raises(UndoError, match="whose kept copy is damaged"):
        go_back(undo.folder, 1)
    assert (project / "file").read_bytes() == b"new"


def test_journals_that_nobody_used_for_long_go_when_a_new_one_begins(project: Path, tmp_path: Path) -> None:
    parent = tmp_path / "state" / "undo"
    for name, age in (("old", 40), ("young", 20)):
        put(project / name, b"x", Undo(parent / name))
        seconds = (parent / name / INDEX).stat().st_mtime - age * 24 * 3600
        os.utime(parent / name / INDEX, (seconds, seconds))

    put(project / "file", b"x", Undo(parent / "new"))

    assert sorted(path.name for path in parent.iterdir() if path.name != ".open") == ["new", "young"]


def test_a_journal_of_a_newer_version_is_refused_and_left_alone(project: Path, undo: Undo) -> None:
    put(project / "file", b"x", undo)
    index = undo.folder / INDEX
    index.write_text(index.read_text().replace('"version":1', '"version":2'))

    with pytest.raises(UndoError, match="has version 2, and this handrail knows 1"):
        read(undo.folder)
    with pytest.raises(UndoError, match="has version 2"):
        put(project / "file", b"y", Undo(undo.folder))
    assert (project / "file").read_bytes() == b"x"


def test_a_line_that_was_cut_off_is_left_out_and_the_next_one_is_not_harmed(project: Path, undo: Undo) -> None:
    put(project / "file", b"1", undo)
    with (undo.folder / INDEX).open("ab") as index:
        index.write(b'{"begin":"cut of')

    put(project / "file", b"2", Undo(undo.folder))

    assert [entry.number for entry in read(undo.folder).changes] == [1, 2]
    go_back(undo.folder, 2)
    assert (project / "file").read_bytes() == b"1"


def test_two_processes_may_write_one_journal(project: Path, undo: Undo) -> None:
    other = Undo(undo.folder)
    put(project / "a", b"1", undo)
    put(project / "b", b"1", other)
    put(project / "a", b"2", undo)

    go_back(undo.folder, 2)

    assert tree(project) == {"a": b"1"}


@pytest.mark.proves("R7")
@pytest.mark.parametrize(
    ("case", "left", "restored"),
    [
        ("modify", {"old", "new"}, "old"),
        ("large", {"old", "new"}, "old"),
        ("create", {"none", "new"}, "none"),
        ("linked", {"old", "new", "torn"}, "old"),
        ("restore", {"old", "new"}, "old"),
    ],
)
def test_killed_at_any_step_a_file_is_old_or_new_and_can_be_brought_back(
    tmp_path: Path, case: str, left: set[str], restored: str
) -> None:
    """Only a file with several names can be torn, for one step or two; the journal brings it back as well."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("killed.py"), tmp_path, case],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]

    assert len(lines) > 40
    assert {line["left"] for line in lines} == left - {"torn"} or case == "linked"
    assert {line["left"] for line in lines} <= left
    assert {line["restored"] for line in lines} == {restored}
    assert [line["after_sweep"] for line in lines if line["after_sweep"]] == []
    names = {"create": [], "linked": ["file", "other"]}.get(case, ["file"])
    assert {tuple(line["beside"]) for line in lines} == {tuple(names)}


class Sessions(RuleBasedStateMachine):
    """Edits and undos in any order, beside a list of what the files held before each change."""

    NAMES = st.sampled_from(["a", "b", "deep/c", "deep/er/d"])
    CONTENTS = st.sampled_from([b"", b"one", b"two\r\n", b"\xff\x00", b"x" * 5000])

    @initialize()
    def start(self) -> None:
        self.base = tempfile.TemporaryDirectory()
        root = Path(os.path.realpath(self.base.name))
        self.project, self.folder = root / "project", root / "state" / "undo" / "session"
        self.project.mkdir()
        (self.project / "a").write_bytes(b"first")
        self.undo = Undo(self.folder)
        self.before: dict[int, dict[str, bytes]] = {}

    def files(self) -> dict[str, bytes]:
        return {name: content for name, content in tree(self.project).items() if content is not None}

    def next_number(self) -> int:
        return len(read(self.folder).entries) + 1 if (self.folder / INDEX).exists() else 1

    @rule(name=NAMES, content=CONTENTS)
    def write(self, name: str, content: bytes) -> None:
        self.before[self.next_number()] = self.files()
        put(self.project / name, content, self.undo)
        assert (self.project / name).read_bytes() == content

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if (self.project / name).exists():
            self.before[self.next_number()] = self.files()
            remove(self.project / name, self.undo)

    @rule()
    def resume(self) -> None:
        self.undo = Undo(self.folder)

    @precondition(lambda self: self.before)
    @rule(data=st.data())
    def back(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.before)))
        next_one, now = self.next_number(), self.files()
        go_back(self.folder, number)
        assert self.files() == self.before[number]
        if self.next_number() > next_one:
            self.before[next_one] = now

    @invariant()
    def nothing_is_left_beside(self) -> None:
        assert not [name for name in self.files() if ".handrail" in name]

    def teardown(self) -> None:
        self.base.cleanup()


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=25, stateful_step_count=15)
