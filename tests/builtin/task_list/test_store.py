"""The lists on disk: several processes at once, sudden death, versions, damage."""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = pytest.mark.anyio

WRITER = """
import asyncio, sys
from pathlib import Path
from tests.builtin.bash.session import Session

async def main(folder, count):
    session = Session(Path(folder))
    for _ in range(count):
        outcome = await session.use("TaskCreate", {"subject": "one", "description": ""})
        made = outcome.output.data["task"]["id"]
        if made != "1":
            await session.use("TaskUpdate", {"taskId": made, "addBlockedBy": ["1"]})
        print(made, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def writer(folder: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(count)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )


async def tasks(session: Session) -> list[dict[str, Any]]:
    outcome = await session.use("TaskList", {})
    assert outcome.output is not None
    found: list[dict[str, Any]] = outcome.output.data["tasks"]
    return found


@pytest.mark.proves("N20")
async def test_processes_that_write_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    processes = [writer(tmp_path, 15) for _ in range(3)]
    told = [process.communicate()[0].split() for process in processes]
    found = await tasks(Session(tmp_path))

    assert sorted(int(made) for ids in told for made in ids) == list(range(1, 46))
    assert [task["id"] for task in found] == [str(number) for number in range(1, 46)]
    assert all(task["blockedBy"] == ["1"] for task in found[1:])


async def test_agents_of_one_session_that_write_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    sessions = [Session(tmp_path) for _ in range(5)]
    given = {"subject": "one", "description": ""}
    await asyncio.gather(*(session.use("TaskCreate", given) for session in sessions * 4))

    assert [task["id"] for task in await tasks(sessions[0])] == [str(number) for number in range(1, 21)]


@pytest.mark.proves("R13")
async def test_a_killed_writer_leaves_a_whole_list_with_all_it_told_of(tmp_path: Path) -> None:
    process = writer(tmp_path, 1_000_000)
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(20)]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    session = Session(tmp_path)
    after = await session.use("TaskCreate", {"subject": "after", "description": ""})

    assert after.status is Status.OK
    assert set(told) <= {task["id"] for task in await tasks(session)}


async def test_whoever_reads_while_it_is_changed_has_the_old_list_or_the_new_one(tmp_path: Path) -> None:
    session = Session(tmp_path)
    await session.use("TaskCreate", {"subject": "first", "description": ""})
    with (session.state / "todo" / "tasks.json").open() as reading:
        await session.use("TaskCreate", {"subject": "second", "description": "x" * 10_000})
        seen = json.load(reading)

    assert [task["subject"] for task in seen["tasks"]] == ["first"]
    assert len(await tasks(session)) == 2


CRAMPED = """
import asyncio, resource, sys
from pathlib import Path
from tests.builtin.bash.session import Session

async def main():
    session = Session(Path(sys.argv[1]))
    await session.use("TaskCreate", {"subject": "first", "description": ""})
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    outcome = await session.use("TaskCreate", {"subject": "second", "description": "x" * 10_000})
    print(outcome.result.text)

asyncio.run(main())
"""


async def test_a_list_that_does_not_fit_on_the_disk_stays_as_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CRAMPED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])

    assert done.stdout.startswith("Nothing was changed: ")
    assert "cannot be written: File too large. Go on without the list" in done.stdout
    assert [task["subject"] for task in await tasks(Session(tmp_path))] == ["first"]


async def test_a_list_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    session = Session(tmp_path)
    path = session.state / "todo" / "tasks.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"version": 2, "tasks": "of another kind"}))
    outcomes = await session.calls(("TaskList", {}), ("TaskCreate", {"subject": "a", "description": ""}))

    said = f"{path} was written by a newer handrail. Ask the user to go on with that one."
    assert [outcome.result.text for outcome in outcomes] == [said, said]
    assert json.loads(path.read_text())["version"] == 2


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"version": null}'])
async def test_a_damaged_list_is_told_and_not_written_over(tmp_path: Path, content: str) -> None:
    session = Session(tmp_path)
    path = session.state / "todo" / "tasks.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    outcome = await session.use("TaskCreate", {"subject": "a", "description": ""})

    assert outcome.status is Status.ERROR
    assert outcome.result.text.startswith(f"{path} is damaged (")
    assert path.read_text() == content


async def test_a_lock_that_is_never_given_up_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.builtin.task_list.store.LOCK_SECONDS", 0.02)
    session = Session(tmp_path)
    folder = session.state / "todo"
    folder.mkdir(parents=True)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    outcome = await session.use("TaskCreate", {"subject": "a", "description": ""})
    os.close(fd)

    assert outcome.result.text.startswith(f"Nothing was changed: another process has held {folder / 'lock'} for ")
    assert await tasks(session) == []


async def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.state.write_text("a file where the folder should be")
    outcome = await session.use("TaskCreate", {"subject": "a", "description": ""})

    assert outcome.status is Status.ERROR
    assert outcome.result.text.startswith("Nothing was changed: ")


async def test_a_link_in_place_of_the_draft_is_not_followed(tmp_path: Path) -> None:
    session = Session(tmp_path)
    folder = session.state / "todo"
    folder.mkdir(parents=True)
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (folder / "tasks.draft").symlink_to(precious)
    outcome = await session.use("TaskCreate", {"subject": "a", "description": ""})

    assert outcome.status is Status.ERROR
    assert precious.read_text() == "kept"
