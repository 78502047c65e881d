"""A file is replaced whole or not at all, and keeps all that is not its content."""

import errno
import fcntl
import hashlib
import os
import resource
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail.errors import FileChangedError, ToolError
from handrail.files import replace
from handrail.files.journal import Note
from handrail.files.paths import locate
from handrail.files.replace import TargetFile
from handrail.files.source import FileSource
from handrail.files.undo import Undo, read

NOTE = Note("Test", "call-1")


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def put(path: Path | str, content: bytes, journal: Undo | None = None) -> Path:
    with TargetFile(locate(str(path), "/")) as target:
        old = target.digest() if target.exists else ""
        written = target.write(lambda: iter((content,)), old, journal, NOTE)
    assert (written.digest, written.stat.st_size) == (sha(content), len(content))
    return Path(path)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def undo(tmp_path_factory: pytest.TempPathFactory) -> Undo:
    return Undo(tmp_path_factory.mktemp("state") / "undo" / "session")


@pytest.fixture
def nobody() -> Iterator[Callable[[], None]]:
    """Work as a user without rights from some moment on, also when the tests are run by root."""
    root = os.geteuid() == 0

    def drop() -> None:
        if root:
            os.setegid(65534)
            os.seteuid(65534)

    yield drop
    if root:
        os.seteuid(0)
        os.setegid(0)


@pytest.mark.proves("R7")
def test_mode_owner_attributes_and_links_are_kept_and_nothing_is_left_beside(tmp_path: Path, undo: Undo) -> None:
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    file.parent.mkdir()
    file.write_bytes(b"old")
    file.chmod(0o751)
    link.symlink_to("folder/file")
    owner = (1234, 2345) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(file, *owner)
    attributes = hasattr(os, "setxattr")
    if attributes:
        os.setxattr(file, "user.colour", b"blue")

    put(link, b"new", undo)

    found = file.stat()
    assert link.readlink() == Path("folder/file")
    assert file.read_bytes() == b"new"
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o751, *owner)
    assert not attributes or os.getxattr(file, "user.colour") == b"blue"
    assert names_in(file.parent) == ["file"]


def test_a_new_file_gets_the_usual_mode_and_its_folders(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        put(tmp_path / "a" / "b" / "c", b"new")
    finally:
        os.umask(before)

    assert (tmp_path / "a" / "b" / "c").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a" / "b" / "c").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o750
    assert names_in(tmp_path / "a" / "b") == ["c"]


def test_a_link_that_leads_nowhere_yet_stays_and_its_end_is_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "end")

    put(tmp_path / "link", b"new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "end").read_bytes() == b"new"


@pytest.mark.proves("R7")
def test_a_file_with_several_names_keeps_them_and_needs_the_journal(tmp_path: Path, undo: Undo) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"a longer old content")
    os.link(one, other)

    with pytest.raises(ToolError, match=r"has 2 names \(hard links\), so it can only be rewritten in place"):
        put(one, b"new")
    assert one.read_bytes() == b"a longer old content"

    put(one, b"new", undo)
    assert (one.read_bytes(), other.read_bytes()) == (b"new", b"new")
    assert one.stat().st_ino == other.stat().st_ino

    put(one, b"now a much longer content" * 1000, undo)
    assert other.read_bytes() == b"now a much longer content" * 1000
    assert [entry.torn for entry in read(undo.folder).changes] == [False, False]


@pytest.mark.parametrize("fails", ["nothing", "exchange", "take"])
def test_a_large_file_goes_into_the_journal_as_it_is_or_as_a_copy(
    tmp_path: Path, undo: Undo, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_arguments: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(replace, "LARGE", 1)
    if fails == "exchange":
        monkeypatch.setattr(replace, "exchange", cannot)
    if fails == "take":
        monkeypatch.setattr(undo, "take", cannot)
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(0o640)
    before = file.stat().st_ino

    put(file, b"new", undo)

    kept = undo.folder / "content" / sha(b"old")
    assert (file.read_bytes(), kept.read_bytes()) == (b"new", b"old")
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(kept.stat().st_mode)) == (0o640, 0o600)
    assert (kept.stat().st_ino == before) is (fails == "nothing" and sys.platform == "linux")
    assert names_in(tmp_path) == ["file"]
    put(file, b"old", undo)
    put(file, b"newer", undo)
    assert kept.read_bytes() == b"old"


def test_a_file_in_a_folder_that_cannot_be_written_is_rewritten_in_place(
    tmp_path_factory: pytest.TempPathFactory, nobody: Callable[[], None]
) -> None:
    base = tmp_path_factory.mktemp("shared")
    base.chmod(0o777)
    for parent in base.parents:
        if parent.stat().st_uid == os.geteuid() and str(parent) != "/":
            parent.chmod(parent.stat().st_mode | 0o055)
    folder, state = base / "folder", base / "state"
    folder.mkdir()
    state.mkdir()
    state.chmod(0o777)
    (folder / "file").write_bytes(b"old")
    (folder / "file").chmod(0o666)
    (folder / "theirs").write_bytes(b"old")
    (folder / "theirs").chmod(0o644)
    folder.chmod(0o555)
    nobody()

    put(folder / "file", b"new", Undo(state / "undo" / "session"))
    assert (folder / "file").read_bytes() == b"new"
    if os.geteuid() == (folder / "theirs").stat().st_uid:
        (folder / "theirs").chmod(0o444)
    with pytest.raises(ToolError, match=r"may not be written by this user \(mode 0[46]44\)\. It is as it was\."):
        put(folder / "theirs", b"new", Undo(state / "undo" / "session"))
    with pytest.raises(ToolError, match=r"cannot be written: Permission denied\. Nothing was changed\."):
        put(folder / "another", b"new", Undo(state / "undo" / "session"))
    assert names_in(folder) == ["file", "theirs"]


@pytest.mark.proves("J6")
@pytest.mark.parametrize("how", ["written", "exchanged", "removed"])
def test_a_change_by_somebody_else_between_reading_and_writing_is_not_overwritten(
    tmp_path: Path, undo: Undo, how: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    with TargetFile(locate(str(file), "/")) as target:
        if how == "written":
            file.write_bytes(b"NEW")  # the same size, within the same moment
        elif how == "exchanged":
            (tmp_path / "x").write_bytes(b"old")
            (tmp_path / "x").rename(file)
        else:
            file.unlink()
        with pytest.raises(FileChangedError, match="just now"):
            target.write(lambda: iter((b"ours",)), sha(b"old"), undo, NOTE)

    assert how == "removed" or read(undo.folder).changes == (), "what did not happen is not to be undone"
    assert [path.read_bytes() for path in tmp_path.iterdir()] == {"written": [b"NEW"], "exchanged": [b"old"]}.get(
        how, []
    )


def test_a_touch_between_reading_and_writing_is_no_change(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    with TargetFile(locate(str(file), "/")) as target:
        os.utime(file, (1, 1))
        file.chmod(0o600)
        target.write(lambda: iter((b"ours",)), sha(b"old"), None, NOTE)

    assert file.read_bytes() == b"ours"


def test_a_new_file_never_replaces_one_that_appeared_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "file"

    with TargetFile(locate(str(file), "/")) as target:
        file.write_bytes(b"theirs")
        with pytest.raises(FileChangedError, match="was created by another program just now"):
            target.write(lambda: iter((b"ours",)), "", None, NOTE)

    assert file.read_bytes() == b"theirs"
    assert names_in(tmp_path) == ["file"]


def test_a_folder_that_became_a_link_since_the_decision_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    place = locate(str(tmp_path / "in" / "file"), "/")
    (tmp_path / "in").rmdir()
    (tmp_path / "in").symlink_to("out")

    with pytest.raises(ToolError, match="is a link now"), TargetFile(place) as target:
        target.write(lambda: iter((b"new",)), "", None, NOTE)
    assert names_in(tmp_path / "out") == []


def test_a_file_that_another_program_holds_locked_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ToolError, match=r"is locked by another program\. It is as it was\."):
            put(file, b"new")
    assert put(file, b"new").read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device"])
def test_only_files_are_written(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case _:
            path = Path("/dev/null")

    with pytest.raises(ToolError, match=rf"is a {kind}, not a file\. Name a file\."):
        TargetFile(locate(str(path), "/"))


@pytest.mark.proves("R7", "R12")
@pytest.mark.parametrize("journal", [True, False])
@pytest.mark.parametrize("links", [1, 2])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, undo: Undo, journal: bool, links: int
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old" * 1000)
    names = ["file"]
    if links > 1:
        os.link(file, tmp_path / "other")
        names = ["file", "other"]
    undo.point("before")

    def limited(size: int, content: bytes) -> str:
        """What a process says that may write no file larger than `size`."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            put(file, content, undo if journal else None)
        except ToolError as error:
            return str(error)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        return ""

    message = limited(200_000, b"new" * 100_000)

    assert "is as it was" in message
    assert "File too large" in message or not journal
    assert file.read_bytes() == b"old" * 1000
    assert names_in(tmp_path) == names
    if journal:
        assert read(undo.folder).changes == ()


def test_a_failure_while_rewriting_in_place_puts_the_old_content_back(
    tmp_path: Path, undo: Undo, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old" * 1000)
    os.link(file, tmp_path / "other")
    truncate = os.ftruncate

    def full(descriptor: int, size: int) -> None:
        monkeypatch.setattr(os, "ftruncate", truncate)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "ftruncate", full)
    with pytest.raises(ToolError, match="Input/output error"):
        put(file, b"new" * 500, undo)

    assert file.read_bytes() == (tmp_path / "other").read_bytes() == b"old" * 1000


def test_folders_that_were_made_for_a_file_that_failed_are_removed(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"some"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        TargetFile(locate(str(tmp_path / "a" / "b" / "c"), "/")) as target,
        pytest.raises(ToolError, match=r"No space left on device\. Nothing was changed\. Ask the user to make room\."),
    ):
        target.write(broken, "", None, NOTE)

    assert names_in(tmp_path) == []


def test_a_source_that_becomes_shorter_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)
    with file.open("rb") as opened:
        source = FileSource(opened.fileno(), 100, whole=-1)
        os.truncate(file, 10)
        with pytest.raises(ToolError, match="became shorter"):
            source.read(0, 100)
