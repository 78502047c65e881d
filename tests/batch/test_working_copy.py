"""The folder that a cell works in: what is copied, and that nothing outside is written or removed."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from handrail.batch.tasks import BatchTask, Revision
from handrail.batch.working_copy import content_digest, make_copy, open_work_folder, remove_copy, write_files
from handrail.errors import HandrailError

pytestmark = pytest.mark.anyio


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a.txt").write_text("a")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    return folder


async def test_a_folder_is_copied_with_links_as_links_and_without_pipes(source: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (source / "link").symlink_to(outside)
    (source / "dangling").symlink_to("nowhere")
    os.mkfifo(source / "pipe")
    task = BatchTask(id="a", prompt="x", folder=str(source), files={"new/b.txt": "b", "link/c.txt": "c"})

    await make_copy(task, tmp_path / "copy")

    copy = tmp_path / "copy"
    assert sorted(each.name for each in copy.iterdir()) == ["dangling", "inner", "link", "new", "run.sh"]
    assert (str((copy / "dangling").readlink()), os.access(copy / "run.sh", os.X_OK)) == ("nowhere", True)
    assert (copy / "new" / "b.txt").read_text() == "b"
    assert ((copy / "link" / "c.txt").read_text(), [*outside.iterdir()]) == ("c", [])  # not through the link


def test_files_of_the_check_replace_whatever_an_agent_left_there(tmp_path: Path) -> None:
    copy, outside = tmp_path / "copy", tmp_path / "outside"
    copy.mkdir()
    outside.mkdir()
    (outside / "test_a.py").write_text("mine")
    (copy / "tests").symlink_to(outside)
    (copy / "check.sh").symlink_to(outside / "test_a.py")
    (copy / "data").write_text("a file where a folder has to be")

    write_files(copy, {"tests/test_a.py": "theirs", "check.sh": "exit 1", "data/x/y": "z"})

    assert (outside / "test_a.py").read_text() == "mine"
    found = [(copy / name).read_text() for name in ("tests/test_a.py", "check.sh", "data/x/y")]
    assert found == ["theirs", "exit 1", "z"]


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.com")
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


async def test_of_a_repository_the_commit_and_its_past_are_there_and_its_future_is_not(
    source: Path, tmp_path: Path
) -> None:
    git(source, "init", "--quiet")
    for text in ("first", "second", "the solution"):
        (source / "inner" / "a.txt").write_text(text)
        git(source, "add", ".")
        git(source, "commit", "--quiet", "-m", text)
    later = git(source, "rev-parse", "HEAD").strip()
    commit = Revision(repository=str(source), revision="HEAD~1")
    task = BatchTask(id="a", prompt="x", folder=commit)

    await make_copy(task, tmp_path / "copy")

    assert (tmp_path / "copy" / "inner" / "a.txt").read_text() == "second"
    assert git(tmp_path / "copy", "log", "--all", "--format=%s").split() == ["second", "first"]
    known = subprocess.run(["git", "cat-file", "-e", later], cwd=tmp_path / "copy", check=False, capture_output=True)
    assert known.returncode != 0
    assert await content_digest(task) == git(source, "rev-parse", "HEAD~1").strip()
    with pytest.raises(HandrailError, match=r"git rev-parse .* failed in"):
        await content_digest(BatchTask(id="a", prompt="x", folder=Revision(repository=str(source), revision="gone")))


async def test_the_hash_of_a_folder_tells_any_change_of_it(source: Path) -> None:
    task = BatchTask(id="a", prompt="x", folder=str(source))
    seen = [await content_digest(task), await content_digest(task)]
    assert len({*seen}) == 1

    (source / "inner" / "a.txt").write_text("b")
    seen.append(await content_digest(task))
    (source / "run.sh").chmod(0o644)
    seen.append(await content_digest(task))
    (source / "link").symlink_to("a")
    seen.append(await content_digest(task))
    (source / "inner" / "a.txt").rename(source / "inner" / "c.txt")
    seen.append(await content_digest(task))

    assert len({*seen}) == 5


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    note = tmp_path / "work"
    with open_work_folder(note) as left:
        (left / "copy").mkdir()
        kept, text = note.read_text(), (left / "owner").read_text()
    left.mkdir()  # as if it had been killed
    (left / "owner").write_text(text)
    note.write_text(kept)

    with open_work_folder(note) as work:
        assert (left.exists(), work.exists()) == (False, True)

    assert (work.exists(), note.exists()) == (False, False)


@pytest.mark.parametrize("name", ["handrail-batch-x", "precious"])
def test_a_note_that_names_a_folder_of_others_removes_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    precious = tmp_path / name
    precious.mkdir()
    (precious / "owner").write_text("another batch" if name != "precious" else str(tmp_path / "work"))
    (tmp_path / "work").write_text(str(precious))

    with open_work_folder(tmp_path / "work"):
        assert precious.exists()


def test_read_only_folders_of_a_copy_are_removed_and_links_not_followed(tmp_path: Path) -> None:
    copy, outside = tmp_path / "copy", tmp_path / "outside"
    (copy / "cache" / "deep").mkdir(parents=True)
    outside.mkdir(mode=0o755)
    (copy / "cache" / "deep" / "a").write_text("a")
    (copy / "link").symlink_to(outside)
    (copy / "cache" / "deep").chmod(0o500)
    (copy / "cache").chmod(0o500)

    remove_copy(copy)

    assert (copy.exists(), outside.exists(), outside.stat().st_mode & 0o777) == (False, True, 0o755)
