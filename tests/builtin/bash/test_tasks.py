"""Background tasks: started, watched, stopped, remembered, and ended with their session."""

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from handrail.builtin.support.background_tasks import BackgroundTask, BackgroundTasks, TaskRequest, close_tasks
from handrail.conversation.blocks import Text
from handrail.conversation.messages import Message, UserMessage
from handrail.errors import HandrailError
from handrail.tools.outcome import Cause, Status
from tests.builtin.bash.session import Session
from tests.processes.seen import alive, noted, read_pipe, stay

pytestmark = pytest.mark.anyio

LASTING = "setsid sh -c '{stay}' & while ! [ -s pids ]; do :; done; echo > ready; sleep 1000"


async def begun(session: Session, command: str, **given: Any) -> str:
    outcome = await session.bash(command, run_in_background=True, **given)
    assert outcome.output is not None
    return str(outcome.output.data["backgroundTaskId"])


def told(session: Session, *history: Message) -> list[str]:
    notes = session.tasks.attachments(history=history)
    texts = [block.text for found in notes for block in found.content if isinstance(block, Text)]
    return [line for text in texts for line in text.splitlines()]


def ended(task: BackgroundTask, name: str) -> str:
    return (
        f"Background task {task.id} ({name}) has ended: {task.status}, exit code {task.code}. "
        f"Its output is in {task.output}."
    )


@pytest.mark.proves("N1", "N21")
async def test_a_task_goes_on_while_others_work_and_shows_what_it_said(session: Session) -> None:
    os.mkfifo(session.project / "go")
    task = await begun(session, "echo begun; cat go; exit 3", description="wait for it")
    early = await session.use("TaskOutput", {"task_id": task, "block": False})
    assert await session.text("echo meanwhile") == "meanwhile"
    await asyncio.to_thread((session.project / "go").write_text, "went\n")
    late = await session.use("BashOutput", {"task_id": task})

    assert early.output is not None
    assert early.output.data["retrieval_status"] == "not_ready"
    assert late.result.text == f"Task {task}: failed, exit code 3\nbegun\nwent"
    assert late.output is not None
    assert late.output.data == {
        "retrieval_status": "success",
        "task": {
            "task_id": task,
            "task_type": "local_bash",
            "status": "failed",
            "description": "wait for it",
            "output": "begun\nwent\n",
            "exitCode": 3,
        },
    }


async def test_waiting_for_a_task_ends_with_the_time(session: Session) -> None:
    task = await begun(session, "sleep 1000")
    outcome = await session.use("TaskOutput", {"task_id": task, "timeout": 10})

    assert outcome.result.text == f"Task {task}: running"
    assert outcome.output is not None
    assert outcome.output.data["retrieval_status"] == "timeout"


async def test_several_may_wait_for_one_task(session: Session) -> None:
    os.mkfifo(session.project / "go")
    task = await begun(session, "cat go")
    both = asyncio.ensure_future(session.calls(*[("TaskOutput", {"task_id": task})] * 2))
    await asyncio.to_thread((session.project / "go").write_text, "went")

    assert [outcome.result.text for outcome in await both] == [f"Task {task}: completed, exit code 0\nwent"] * 2


@pytest.mark.proves("R8")
@pytest.mark.parametrize(
    ("name", "field"), [("TaskStop", "task_id"), ("KillShell", "shell_id"), ("KillBash", "task_id")]
)
async def test_a_task_is_stopped_with_all_it_started(session: Session, name: str, field: str) -> None:
    os.mkfifo(session.project / "ready")
    command = LASTING.format(stay=stay(session.project))
    task = await begun(session, command)
    await asyncio.to_thread(read_pipe, session.project / "ready")
    outcome = await session.use(name, {field: task})

    assert outcome.output is not None
    assert outcome.output.data == {
        "message": f"Task {task} was stopped.",
        "task_id": task,
        "task_type": "local_bash",
        "command": command,
    }
    assert not [pid for pid in noted(session.project) if alive(pid)]
    again = await session.use(name, {field: task})
    assert again.result.text == f"Task {task} was over already: killed."


@pytest.mark.parametrize("name", ["TaskOutput", "TaskStop"])
async def test_a_task_that_is_not_there_is_an_error_that_names_those_that_are(session: Session, name: str) -> None:
    task = await begun(session, "true")
    await session.use("TaskOutput", {"task_id": task})
    outcome = await session.use(name, {"task_id": "nope"})

    assert outcome.cause is Cause.FAILED
    known = f"Known tasks: {task} (completed). Use the id of one of these."
    assert outcome.result.text == f"There is no background task 'nope'. {known}"


async def test_a_stop_without_a_task_is_refused(session: Session) -> None:
    assert (await session.use("TaskStop", {})).cause is Cause.REFUSED_INPUT


async def test_the_model_is_told_once_when_a_task_ends(session: Session) -> None:
    await begun(session, "exit 1", description="try it")
    assert await session.tasks.all()[0].wait(20) == "failed"

    assert told(session) == [ended(session.tasks.all()[0], "try it")]
    assert told(session) == []


async def test_a_task_whose_end_was_shown_is_not_told_again(session: Session) -> None:
    outcome = await session.use("TaskOutput", {"task_id": await begun(session, "true")})

    assert told(session, UserMessage((outcome.result,))) == []
    assert told(session) == []


@pytest.mark.parametrize("is_in_history", [True, False])
async def test_an_end_is_told_once_also_if_the_process_is_killed_while_it_is_told(
    session: Session, is_in_history: bool
) -> None:
    task = session.tasks.get(await begun(session, "true"))
    assert task is not None
    await task.wait(20)
    note = next(iter(session.tasks.attachments()))  # killed here: nothing has asked for the next one

    history = (note,) if is_in_history else ()
    resumed = BackgroundTasks(session.tasks.folder.parent)
    assert len(list(resumed.attachments(history=history))) == (not is_in_history)
    again = BackgroundTasks(session.tasks.folder.parent)
    assert list(again.attachments()) == []


async def test_each_line_of_a_monitor_is_an_event(session: Session) -> None:
    outcome = await session.use("Monitor", {"description": "log", "command": "echo one; echo two; echo -n last"})
    assert outcome.output is not None
    task = session.tasks.get(outcome.output.data["taskId"])
    assert task is not None
    await task.wait(20)

    assert told(session) == [
        f"Monitor {task.id} (log): one",
        f"Monitor {task.id} (log): two",
        f"Monitor {task.id} (log): last",
        ended(task, "log"),
    ]


async def test_a_line_is_an_event_once_it_is_whole(tmp_path: Path) -> None:
    task = BackgroundTask(tmp_path, "t", "/", TaskRequest("monitor", ""))
    found = []
    for said in ("on", "e\ntwo\nthr", "ee", "\n"):
        with task.output.open("a") as file:
            file.write(said)
        found.append(task.news())

    assert found == [[], ["one", "two"], [], ["three"]]


async def test_of_very_many_lines_the_last_are_told(session: Session) -> None:
    outcome = await session.use("Monitor", {"description": "log", "command": "seq 1000"})
    assert outcome.output is not None
    task = session.tasks.get(outcome.output.data["taskId"])
    assert task is not None
    await task.wait(20)
    lines = told(session)

    assert lines[0] == f"(950 earlier lines of monitor {task.id} are in {task.output}.)"
    assert [line.rpartition(" ")[2] for line in lines[1:51]] == [str(number) for number in range(951, 1001)]


async def test_a_monitor_ends_with_its_time(session: Session) -> None:
    outcome = await session.use("Monitor", {"description": "log", "command": "sleep 1000", "timeout_ms": 50})
    assert outcome.output is not None
    task = session.tasks.get(outcome.output.data["taskId"])
    assert task is not None

    assert await task.wait(20) == "killed"
    (told,) = session.tasks.attachments()
    assert "exit code 143 (it was stopped because it took longer than 0.05 seconds)" in str(told.content)


async def test_a_task_that_writes_too_much_is_stopped_and_that_is_told(tmp_path: Path) -> None:
    session = Session(tmp_path, output_quota=lambda: 100_000)
    task = await begun(session, "yes")
    ended = await session.use("TaskOutput", {"task_id": task})
    again = BackgroundTasks(session.services.state).get(task)

    told, notice, first, *_ = ended.result.text.split("\n")
    assert (told, first) == (f"Task {task}: killed, exit code 143", "y")
    assert notice.startswith("The output is too large: 100,000 bytes in 50,000 lines. All of it is in ")
    assert ended.result.text.endswith("\n(it was stopped because it wrote more than 100,000 bytes)")
    assert again is not None
    assert again.note == "it was stopped because it wrote more than 100,000 bytes"


@pytest.mark.parametrize("given", [{"ws": {"url": "ws://127.0.0.1:1"}}, {}, {"command": " "}])
async def test_a_monitor_without_a_command_is_refused(session: Session, given: dict[str, Any]) -> None:
    assert (await session.use("Monitor", {"description": "log", **given})).cause is Cause.REFUSED_INPUT


async def test_a_monitor_needs_the_permission_that_its_command_needs(session: Session) -> None:
    denied = await session.use("Monitor", {"description": "x", "command": "touch evil"}, session.rules())

    assert denied.status is Status.DENIED
    assert not (session.project / "evil").exists()


async def test_background_tasks_can_be_switched_off(tmp_path: Path) -> None:
    session = Session(tmp_path, {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"})

    assert (await session.bash("true", run_in_background=True)).cause is Cause.REFUSED_INPUT
    assert (await session.use("Monitor", {"description": "x", "command": "true"})).cause is Cause.UNKNOWN_TOOL


@pytest.mark.proves("R8")
async def test_tasks_end_with_their_session(session: Session) -> None:
    os.mkfifo(session.project / "ready")
    await begun(session, LASTING.format(stay=stay(session.project)))
    await asyncio.to_thread(read_pipe, session.project / "ready")
    await close_tasks(session.services)

    assert noted(session.project)
    assert not [pid for pid in noted(session.project) if alive(pid)]


async def test_a_resumed_session_knows_its_tasks(session: Session) -> None:
    over, running = await begun(session, "echo said; exit 2", description="first"), await begun(session, "sleep 1000")
    await session.use("TaskOutput", {"task_id": over})
    later = BackgroundTasks(session.state)

    assert [(task.id, task.status, task.code, task.description) for task in later.all()] == [
        (over, "failed", 2, "first"),
        (running, "unknown", None, ""),
    ]
    assert later.all()[0].output.read_text() == "said\n"
    (news,) = later.attachments()
    assert f"Background task {running} (sleep 1000) does not run any more" in str(news)
    assert list(BackgroundTasks(session.state).attachments()) == []


async def test_what_is_written_down_is_for_its_owner_only(session: Session) -> None:
    task = await begun(session, "true")
    folder = session.state / "tasks"

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(path.name for path in folder.iterdir()) == [f"{task}.json", f"{task}.output"]


async def test_a_list_of_a_newer_version_is_not_misread(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "x.json").write_text(json.dumps({"version": 99}))

    with pytest.raises(HandrailError, match="newer handrail"):
        BackgroundTasks(tmp_path)
