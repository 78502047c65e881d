"""The task list as a model uses it: add, look, change, link, delete."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from handrail.builtin.task_list.cards import MAX_LINES
from handrail.tools.outcome import Outcome, Status
from tests.builtin.bash.session import Session

pytestmark = pytest.mark.anyio


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


async def data(session: Session, name: str, **given: Any) -> Any:
    outcome = await session.use(name, given)
    assert outcome.status is Status.OK, outcome.result.text
    assert outcome.output is not None
    return outcome.output.data


def body(outcome: Outcome) -> str:
    assert outcome.output is not None
    assert outcome.output.card is not None
    return outcome.output.card.body


async def add(session: Session, *subjects: str) -> None:
    for subject in subjects:
        await data(session, "TaskCreate", subject=subject, description=f"about {subject}")


@pytest.mark.proves("N20")
async def test_tasks_are_numbered_listed_and_shown(session: Session) -> None:
    assert await data(session, "TaskCreate", subject="Build", description="make it") == {
        "task": {"id": "1", "subject": "Build"}
    }
    assert await data(session, "TaskCreate", subject="Test", description="", activeForm="Testing") == {
        "task": {"id": "2", "subject": "Test"}
    }

    assert await data(session, "TaskGet", taskId="1") == {
        "task": {
            "id": "1",
            "subject": "Build",
            "description": "make it",
            "status": "pending",
            "blocks": [],
            "blockedBy": [],
        }
    }
    assert await data(session, "TaskList") == {
        "tasks": [
            {"id": "1", "subject": "Build", "status": "pending", "blockedBy": []},
            {"id": "2", "subject": "Test", "status": "pending", "blockedBy": []},
        ]
    }


async def test_an_empty_list_says_so(session: Session) -> None:
    assert (await session.use("TaskList", {})).result.text == "There are no tasks."
    assert not session.state.exists()


async def test_a_change_tells_what_is_different_now(session: Session) -> None:
    await add(session, "Build")

    assert await data(session, "TaskUpdate", taskId="1", status="in_progress", owner="main", subject="Build") == {
        "success": True,
        "taskId": "1",
        "updatedFields": ["owner", "status"],
        "statusChange": {"from": "pending", "to": "in_progress"},
    }
    given = {"description": "anew", "activeForm": "Building", "metadata": {"a": 1}}
    assert await data(session, "TaskUpdate", taskId="1", **given) == {
        "success": True,
        "taskId": "1",
        "updatedFields": ["description", "activeForm", "metadata"],
    }
    again = await session.use("TaskUpdate", {"taskId": "1", **given})
    assert again.result.text == "Task 1 is as it was: nothing of that is new."


async def test_a_key_of_the_metadata_goes_with_null(session: Session) -> None:
    await data(session, "TaskCreate", subject="a", description="", metadata={"keep": [1], "go": 2, "never": None})
    await data(session, "TaskUpdate", taskId="1", metadata={"go": None, "new": "x", "unknown": None})

    text = (await session.use("TaskGet", {"taskId": "1"})).result.text
    assert text == 'Task 1 (pending): a\nMetadata: {"keep":[1],"new":"x"}'


@pytest.mark.parametrize("given", [{"addBlocks": ["2"]}, {"taskId": "2", "addBlockedBy": ["1"]}])
async def test_who_blocks_whom_is_seen_from_both_sides(session: Session, given: dict[str, Any]) -> None:
    await add(session, "first", "second")
    changed = await data(session, "TaskUpdate", **{"taskId": "1", **given})
    one, two = [(await data(session, "TaskGet", taskId=which))["task"] for which in ("1", "2")]

    assert changed["updatedFields"] == ["blocks" if "addBlocks" in given else "blockedBy"]
    assert (one["blocks"], one["blockedBy"]) == (["2"], [])
    assert (two["blocks"], two["blockedBy"]) == ([], ["1"])


async def test_the_list_names_only_what_is_still_waited_for(session: Session) -> None:
    await add(session, "first", "second", "third")
    await data(session, "TaskUpdate", taskId="3", addBlockedBy=["1", "2"])
    begun = await session.use("TaskUpdate", {"taskId": "3", "status": "in_progress"})
    done = await session.use("TaskUpdate", {"taskId": "1", "status": "completed", "owner": "helper"})
    listed = await session.use("TaskList", {})

    assert begun.result.text.endswith("It still waits for 1, 2.")
    assert listed.result.text.splitlines() == [
        "1. first (completed, owner helper)",
        "2. second (pending)",
        "3. third (in_progress, blocked by 2)",
    ]
    assert body(done) == "[x] 1. first (helper)\n[ ] 2. second\n[>] 3. third (waits for 2)"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"taskId": "9", "status": "completed"}, "There is no task '9'. TaskList shows those that there are."),
        ({"taskId": "1", "addBlocks": ["9"]}, "There is no task '9'. TaskList shows those that there are."),
        ({"taskId": "1", "addBlockedBy": ["1"]}, "Task 1 cannot wait for itself. Nothing was changed."),
        (
            {"taskId": "1", "subject": "new", "addBlockedBy": ["3"]},
            "Task 1 cannot wait for 3: 3 waits for 2, 2 waits for 1 already. Nothing was changed.",
        ),
        ({"taskId": "1", "metadata": {"a": "x" * 20_000}}, "The metadata takes 20,009 characters, 20,000 are kept."),
    ],
)
async def test_what_cannot_be_is_answered_and_changes_nothing(
    session: Session, given: dict[str, Any], said: str
) -> None:
    await add(session, "first", "second", "third")
    await data(session, "TaskUpdate", taskId="2", addBlockedBy=["1"])
    await data(session, "TaskUpdate", taskId="3", addBlockedBy=["2"])
    before = await data(session, "TaskList")
    answer = await data(session, "TaskUpdate", **given)

    assert answer["error"].startswith(said)
    assert answer | {"error": ""} == {"success": False, "taskId": given["taskId"], "updatedFields": [], "error": ""}
    assert await data(session, "TaskList") == before


async def test_a_deleted_task_is_gone_from_the_others_and_its_id_is_not_used_again(session: Session) -> None:
    await add(session, "first", "second")
    await data(session, "TaskUpdate", taskId="2", addBlockedBy=["1"])

    assert await data(session, "TaskUpdate", taskId="1", status="deleted") == {
        "success": True,
        "taskId": "1",
        "updatedFields": ["status"],
        "statusChange": {"from": "pending", "to": "deleted"},
    }
    assert (await data(session, "TaskGet", taskId="2"))["task"]["blockedBy"] == []
    await data(session, "TaskUpdate", taskId="2", status="deleted")
    assert await data(session, "TaskGet", taskId="2") == {"task": None}
    assert (await data(session, "TaskCreate", subject="third", description=""))["task"]["id"] == "3"


async def test_calls_of_one_answer_see_each_other_in_order(session: Session) -> None:
    created = [("TaskCreate", {"subject": f"task {n}", "description": ""}) for n in (1, 2)]
    outcomes = await session.calls(*created, ("TaskList", {}), ("TaskUpdate", {"taskId": 2, "status": "deleted"}))

    assert [outcome.result.text for outcome in outcomes] == [
        "Task 1 was added: task 1",
        "Task 2 was added: task 2",
        "1. task 1 (pending)\n2. task 2 (pending)",
        "Task 2 was deleted.",
    ]


async def test_nobody_is_asked_about_the_list_not_even_in_plan_mode(session: Session) -> None:
    for mode in ("default", "plan", "dontAsk"):
        for name, given in (
            ("TaskCreate", {"subject": "a", "description": ""}),
            ("TaskUpdate", {"taskId": "1", "status": "completed"}),
            ("TaskGet", {"taskId": "1"}),
            ("TaskList", {}),
        ):
            assert (await session.use(name, given, session.rules(mode))).status is Status.OK


async def test_the_list_belongs_to_its_owner_and_says_its_version(session: Session) -> None:
    await add(session, "first")
    folder = session.state / "todo"
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert files == {"tasks.json": 0o600, "lock": 0o600}
    assert json.loads((folder / "tasks.json").read_text())["version"] == 1


async def test_a_long_list_is_shown_by_what_is_open(session: Session) -> None:
    await add(session, *(f"task {n}" for n in range(MAX_LINES + 2)))
    done = await session.use("TaskUpdate", {"taskId": "1", "status": "completed"})

    assert body(done).splitlines()[0] == "[ ] 2. task 1"
    assert body(done).splitlines()[-1] == "... and 1 more"
    assert len(body(done).splitlines()) == MAX_LINES + 1


async def test_there_is_a_limit_to_the_number_of_tasks(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.builtin.task_list.items.MAX_ITEMS", 1)
    await add(session, "first")
    refused = await session.use("TaskCreate", {"subject": "second", "description": ""})

    assert refused.status is Status.ERROR
    assert refused.result.text.startswith("There are 1 tasks already. Delete some")
