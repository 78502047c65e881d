"""Programs that programs start: none of them is one that could have been put there without consent."""

import os
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.files.search_path import path_outside, program_folders
from handrail.tools.outcome import Status
from tests.session.test_sandbox import World

pytestmark = pytest.mark.anyio

EVIL = '#!/bin/sh\ntouch {mark}\nexec /bin/gzip "$@"\n'
WRITES = [
    "cp evil.sh .venv/bin/gzip", "cp evil.sh .venv/bin/new", "mv evil.sh .venv/bin/tar", "touch .venv/bin/x",
    "cat evil.sh > .venv/bin/gzip", "sed -i s/a/b/ .venv/bin/activate", "rm .venv/bin/activate", "mv .venv other",
    "cp -r tools/. .venv/bin", "cp evil.sh .venv/b[i]n", "cp evil.sh alias/gzip",
]  # fmt: skip
READS = [
    "tar tzf a.tgz", "tar tzf a.tgz > list.txt", "touch a; tar tzf a.tgz", "cp a.tgz b.tgz && tar tzf b.tgz",
    "timeout 20 tar tzf a.tgz", "sed -i s/a/b/ f.txt; tar tzf a.tgz", "bash -c 'tar tzf a.tgz'",
    "echo $(tar tzf a.tgz)",
]  # fmt: skip


@pytest.fixture
def venv(tmp_path: Path) -> World:
    """A project with an activated environment of its own, in which programs have been put."""
    made = World(tmp_path)
    programs = made.project / ".venv" / "bin"
    programs.mkdir(parents=True)
    (made.project / "tools").mkdir()
    (made.project / "alias").symlink_to(".venv/bin")
    for name in ("evil.sh", "tools/gzip"):
        (made.project / name).write_text(EVIL.format(mark=made.root / "PWNED"))
        (made.project / name).chmod(0o755)
    (programs / "activate").write_text("a\n")
    (made.project / "f.txt").write_text("a\n")
    with tarfile.open(made.project / "a.tgz", "w:gz") as archive:
        archive.add(made.project / "f.txt", "f.txt")
    made.env["PATH"] = f"{programs}:{os.environ['PATH']}"
    return made


@pytest.mark.proves("X16", "R2")
@pytest.mark.parametrize("line", READS)
async def test_a_program_of_the_project_is_not_started_by_another(venv: World, line: str) -> None:
    (venv.project / "evil.sh").rename(venv.project / ".venv" / "bin" / "gzip")
    venv.begin({}, defaultMode="acceptEdits")

    outcome = await venv.bash(line)

    assert outcome.status is Status.OK, outcome.result.text
    assert not (venv.root / "PWNED").exists()


@pytest.mark.proves("X16")
@pytest.mark.parametrize("line", WRITES)
async def test_programs_on_the_path_are_protected_where_edits_are_accepted(venv: World, line: str) -> None:
    venv.begin({}, defaultMode="acceptEdits")

    assert (await venv.bash(line)).status is Status.DENIED
    assert "is protected" in venv.questions[-1]
    assert sorted(path.name for path in (venv.project / ".venv" / "bin").iterdir()) == ["activate"]


@pytest.mark.proves("X16")
async def test_the_file_tools_ask_before_they_write_a_program(venv: World) -> None:
    venv.begin({}, defaultMode="acceptEdits")

    for name in (".venv/bin/gzip", "alias/gzip"):
        outcome = await venv.use("Write", file_path=str(venv.project / name), content="x")
        assert outcome.status is Status.DENIED
    assert (await venv.use("Write", file_path=str(venv.project / "new.txt"), content="x")).status is Status.OK
    assert (await venv.bash("cp evil.sh .venv/notes.txt")).status is Status.OK


@pytest.mark.needs("bwrap")
@pytest.mark.proves("X16")
async def test_the_sandbox_does_not_write_a_program(venv: World) -> None:
    venv.begin({"enabled": True})
    line = venv.script("cp evil.sh .venv/bin/gzip; echo ok > out.txt; mv .venv elsewhere")
    await venv.bash(line)
    for sandbox in venv.closing:
        sandbox.close()

    assert (venv.project / "out.txt").exists()
    assert sorted(path.name for path in (venv.project / ".venv" / "bin").iterdir()) == ["activate"]


@pytest.mark.proves("X16")
async def test_an_approved_command_uses_the_programs_of_the_project(venv: World) -> None:
    own = venv.project / ".venv" / "bin" / "ls"
    own.write_text("#!/bin/sh\necho mine\n")
    own.chmod(0o755)
    venv.begin({})

    assert (await venv.bash("ls")).status is Status.DENIED
    venv.agrees = True
    assert "mine" in (await venv.bash("ls")).result.text


ENTRIES = ["out", "out/bin", "work/bin", "work/.venv/bin", "work", "into", "work/away", "work/none", "./x", "", "."]
OUTSIDE = ("out", "out/bin")
INSIDE = {"work/bin": "work/bin", "work/.venv/bin": "work/.venv/bin", "into": "work/bin", "work/none": "work/none"}


@pytest.mark.proves("X16")
@given(st.lists(st.sampled_from(ENTRIES), max_size=8))
def test_no_folder_of_the_clean_path_lies_in_a_working_folder(entries: list[str]) -> None:
    with tempfile.TemporaryDirectory() as made:
        base = os.path.realpath(made)
        for name in ("out/bin", "work/bin", "work/.venv/bin"):
            Path(base, name).mkdir(parents=True)
        Path(base, "into").symlink_to("work/bin")
        Path(base, "work", "away").symlink_to("../out/bin")
        path = ":".join(f"{base}/{name}" if name[:1] not in ("", ".") else name for name in entries)

        kept = path_outside(path, [f"{base}/work"]).split(":")
        guarded = program_folders(path, [f"{base}/work"])

        wanted = [f"{base}/{name}" for name in entries if name in OUTSIDE]
        assert kept == (wanted or ["/usr/local/bin", "/usr/bin", "/bin"])
        assert {f"{base}/{INSIDE[name]}" for name in entries if name in INSIDE} <= set(guarded)
        assert f"{base}/work" not in guarded
