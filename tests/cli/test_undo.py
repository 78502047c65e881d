"""`handrail undo`, as a person runs it."""

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.forked import program

from handrail import Agent, Outcome, Status, tool
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.redact import Redactor
from handrail.files.journal import Note
from handrail.files.paths import locate
from handrail.files.replace import TargetFile
from handrail.files.undo import Undo
from handrail.testing import ScriptedModel, say, use
from handrail.tools.events import CallFinished
from handrail.transcripts.store import TranscriptStore


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "project"
    folder.mkdir()
    return folder


def undone(project: Path, *arguments: str, command: str = "undo") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), command, *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HANDRAIL_STATE_DIR": str(project.parent / "state")},
    )


def session(project: Path, name: str, cwd: Path | None = None) -> Undo:
    return Undo(project.parent / "state" / "undo" / name, str(cwd or project))


def put(path: Path, content: bytes, undo: Undo) -> None:
    with TargetFile(locate(str(path), "/")) as target:
        old = target.digest() if target.exists else ""
        target.write(lambda: iter((content,)), old, undo, Note("Write", "call-1"))


def test_the_newest_session_of_this_folder_is_taken_back_prompt_by_prompt(project: Path) -> None:
    put(project / "other", b"x", session(project, "elsewhere", project.parent))
    undo = session(project, "mine")
    undo.point("message-1")
    put(project / "file", b"one", undo)
    undo.point("message-2")
    put(project / "file", b"two", undo)
    put(project / "other", b"y", session(project, "elsewhere", project.parent))

    first = undone(project)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == f"restored  {project}/file\n1 file changed back to before change 2 of session mine.\n"
    assert (project / "file").read_bytes() == b"one"

    second = undone(project)
    assert second.stdout == f"removed  {project}/file\n1 file changed back to before change 1 of session mine.\n"
    third = undone(project)
    assert third.returncode == 2
    assert third.stderr == ("handrail: Session mine has nothing left to undo. --to 1 goes back to its beginning.\n")


def test_each_undo_can_be_taken_back_until_the_agent_goes_on(project: Path) -> None:
    def redone() -> tuple[str, bytes]:
        done = undone(project, command="redo")
        return (done.stdout or done.stderr).splitlines()[-1], (project / "new" / "file").read_bytes()

    undo = session(project, "mine")
    for number in (b"one", b"two", b"three"):
        undo.point(f"message-{number.decode()}")
        put(project / "new" / "file", number, undo)
    nothing = "handrail: Session mine has nothing to redo: no undo was made, or the agent has changed files since. "
    nothing += "`handrail undo --list` shows all changes."
    again = "1 file changed again in session mine."

    assert redone() == (nothing, b"three")
    undone(project)
    undone(project)
    undone(project)
    assert not (project / "new").exists()
    assert [redone(), redone()] == [(again, b"one"), (again, b"two")]
    undone(project)
    assert [redone(), redone(), redone()] == [(again, b"two"), (again, b"three"), (nothing, b"three")]
    undone(project)
    put(project / "new" / "file", b"other", undo)
    assert redone() == (nothing, b"other")
    listed = json.loads(undone(project, "--list", "--json").stdout)["changes"]
    assert {"undo", "redo"} < {change["tool"] for change in listed}


@pytest.mark.parametrize("name", ["0f3a", "tidy up"])
def test_a_session_may_be_named_by_the_beginning_of_its_id_or_its_title(project: Path, name: str) -> None:
    opened = TranscriptStore(project.parent / "state" / "sessions", Redactor()).create(str(project), "0f3a-1")
    opened.writer.add_message(UserMessage((Text("tidy up"),)))
    opened.writer.close()
    put(project / "file", b"one", session(project, "0f3a-1"))

    assert undone(project, name).stdout.endswith("1 file changed back to before change 1 of session 0f3a-1.\n")


def test_changes_are_listed_for_people_and_programs(project: Path) -> None:
    undo = session(project, "mine")
    undo.point("message-1")
    put(project / "new" / "file", b"one", undo)
    put(project / "new" / "file", b"two", undo)

    listed = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", undone(project, "--list").stdout)
    assert listed.splitlines() == [
        f"session mine in {project}",
        "-- message-1",
        f"   1  TIME  Write         folder    {project}/new",
        f"   2  TIME  Write         made      {project}/new/file",
        f"   3  TIME  Write         changed   {project}/new/file",
    ]

    data = json.loads(undone(project, "mine", "--list", "--json").stdout)
    assert [(change["number"], change["kind"], change["point"]) for change in data["changes"]] == [
        (1, "folder", "message-1"),
        (2, "made", "message-1"),
        (3, "changed", "message-1"),
    ]
    assert data["points"] == {"message-1": 1}


def test_a_point_may_be_named_and_conflicts_have_to_be_forced(project: Path) -> None:
    undo = session(project, "mine")
    put(project / "file", b"one", undo)
    undo.point("message-2")
    put(project / "file", b"two", undo)
    (project / "file").write_bytes(b"theirs")

    refused = undone(project, "--to", "message-2")
    assert refused.returncode == 2
    assert refused.stderr == (
        f"handrail: Nothing was done: {project}/file was changed since. Look at it, and use --force to go back all "
        "the same.\n"
    )
    forced = undone(project, "--to", "message-2", "--force", "--json")
    assert json.loads(forced.stdout) == {"to": 2, "restored": [f"{project}/file"], "removed": []}
    assert (project / "file").read_bytes() == b"one"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param((), "There are no recorded changes from", id="no session"),
        pytest.param(
            ("other",),
            "There are no recorded changes of a session 'other'. `handrail sessions list",
            id="an unknown one",
        ),
    ],
)
def test_what_is_not_there_is_said(project: Path, arguments: tuple[str, ...], message: str) -> None:
    done = undone(project, *arguments)

    assert done.returncode == 2
    assert done.stderr.startswith(f"handrail: {message}")


def test_what_a_tool_of_the_user_wrote_in_a_run_is_taken_back(project: Path) -> None:
    """The tool only declares what it writes and removes."""

    @tool(writes="path")
    async def stamp(path: str) -> str:
        """Replace a file."""
        (project / path).write_text("stamped")
        return "done"

    @tool(removes="path")
    def drop(path: str) -> str:
        """Remove a file."""
        (project / path).unlink()
        return "done"

    model = ScriptedModel(
        [
            [use("1", "stamp", path="old.txt")],
            [use("2", "Read", file_path="old.txt")],
            [use("3", "stamp", path="old.txt"), use("4", "stamp", path="new.txt"), use("5", "drop", path="gone.txt")],
            [use("6", "Edit", file_path="old.txt", old_string="stamped", new_string="edited")],
            [say("Done.")],
        ]
    )
    (project / "old.txt").write_text("old")
    (project / "gone.txt").write_text("gone")

    async def main() -> list[Outcome]:
        agent = Agent(
            model, [stamp, drop], cwd=project, allow=["Edit", "stamp", "drop"], state_dir=project.parent / "state"
        )
        async with agent:
            events = [event async for event in agent.run("Stamp it.")]
        return [event.outcome for event in events if isinstance(event, CallFinished)]

    unread, *others = asyncio.run(main())
    assert "'old.txt' has not been read yet" in unread.result.text
    assert [outcome.status for outcome in others] == [Status.OK] * 5
    assert {path.name: path.read_text() for path in project.iterdir()} == {"old.txt": "edited", "new.txt": "stamped"}

    listed = undone(project, "--list").stdout.splitlines()[1:]
    assert sorted((line.split()[3], line.split()[4]) for line in listed) == [
        ("Edit", "changed"),
        ("drop", "removed"),
        ("stamp", "changed"),
        ("stamp", "made"),
    ]

    assert undone(project, "--to", "1").returncode == 0
    assert {path.name: path.read_text() for path in project.iterdir()} == {"old.txt": "old", "gone.txt": "gone"}
