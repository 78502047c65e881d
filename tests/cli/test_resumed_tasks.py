"""What a session had on its list and in the background is known when it is resumed, by real runs of the program."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from tests.processes.seen import noted, stay, wait_for_end
from tests.transcripts.cutting import Cut
from tests.transcripts.killing import ran, victim

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import Reply

pytestmark = pytest.mark.anyio

ID = "aaaa1111-0000-4000-8000-000000000000"


def using(tool: str, **given: object) -> Reply:
    return Reply((ToolUse("call", tool, given),))


DONE = Reply((Text("done"),))


@pytest.mark.parametrize(
    ("switch", "write", "read", "shown"),
    [
        (
            "1",
            using("TaskCreate", subject="write the parser", description=""),
            using("TaskList"),
            "write the parser (pending)",
        ),
        (
            "0",
            using("TodoWrite", todos=[{"content": "write it", "status": "in_progress", "activeForm": "writing it"}]),
            using("TodoWrite", todos=[]),
            "write it",
        ),
    ],
)
async def test_the_list_is_there_again(tmp_path: Path, switch: str, write: Reply, read: Reply, shown: str) -> None:
    tasks = {"CLAUDE_CODE_ENABLE_TASKS": switch}
    first = await ran([write, DONE], tmp_path, "-p", "plan", "--session-id", ID, cut=None, **tasks)
    assert first.code == 0, first.errors

    again = await ran([read, DONE], tmp_path, "-p", "go on", "--resume", ID, cut=None, **tasks)

    assert again.code == 0, again.errors
    assert shown in json.dumps(again.requests[1].body["messages"])


async def test_a_background_task_ends_with_its_session_and_the_next_run_says_so(tmp_path: Path) -> None:
    start = using("Bash", command=stay(tmp_path), run_in_background=True)
    look = using("Bash", command="while ! [ -s pids ]; do sleep 0.01; done")
    first = await ran([start, look, DONE], tmp_path, "-p", "go", "--session-id", ID)
    assert first.code == 0, first.errors
    assert all(wait_for_end(pid) for pid in noted(tmp_path))

    again = await ran([DONE], tmp_path, "-p", "go on", "--resume", ID)
    third = await ran([DONE], tmp_path, "-p", "go on", "--resume", ID)

    assert "has ended: killed" in again.texts
    assert third.texts.count("has ended: killed") == 1  # what was said before, and nothing new


@pytest.mark.parametrize("record", [2, 3, 4])
async def test_the_end_of_a_task_that_could_not_be_written_is_told_by_the_next_run(tmp_path: Path, record: int) -> None:
    start = using("Bash", command="sleep 60", run_in_background=True)
    first = await ran([start, DONE], tmp_path, "-p", "go", "--session-id", ID)
    assert first.code == 0, first.errors
    await ran([DONE], tmp_path, "-p", "go on", "--resume", ID, cut=Cut(record, 0, "full"))

    again = await ran([DONE], tmp_path, "-p", "go on", "--resume", ID)

    assert again.code == 0, again.errors
    assert again.texts.count("has ended: killed") == 1


async def test_a_background_task_of_a_killed_session_does_not_run_and_is_told_of(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never")
    start = using("Bash", command=f"echo begun; {stay(tmp_path)}", run_in_background=True)
    wait = using("Bash", command="while ! [ -s pids ]; do sleep 0.01; done; echo ready; cat never")
    async with victim([start, wait], tmp_path, "-p", "go", "--session-id", ID) as running:
        await running.asked(2)
        while not (tmp_path / "pids").exists() or not noted(tmp_path):
            assert running.process.returncode is None, await running.rest()
            await asyncio.sleep(0.005)
        running.process.send_signal(signal.SIGKILL)
        await running.rest()
    assert all(wait_for_end(pid) for pid in noted(tmp_path))
    (record,) = (tmp_path / "state" / "runs" / ID / "tasks").glob("*.json")

    again = await ran([using("TaskOutput", task_id=record.stem), DONE], tmp_path, "-p", "go on", "--resume", ID)

    assert again.code == 0, again.errors
    assert f"Background task {record.stem}" in again.texts
    assert "does not run any more" in again.texts
    assert "unknown\\nbegun" in json.dumps(again.requests[1].body["messages"])
