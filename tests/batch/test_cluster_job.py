"""What a worker of a cluster does with a job: it runs it once, and only if it sees what the sender saw."""

import math
import os
import re
from pathlib import Path
from typing import Any

import pytest

from handrail.batch.cells import Cell, CellAttempt, Matrix, plan_cells, settings_files
from handrail.batch.cluster_job import (
    BATCH,
    JOB,
    ClusterBatch,
    ClusterJob,
    attempt_end,
    read_answer,
    run_job,
    worker_problem,
)
from handrail.batch.tasks import BatchTask, Revision
from handrail.batch.user_config import run_variables, user_config_digest
from handrail.batch.working_copy import content_digest

pytestmark = pytest.mark.anyio


@pytest.fixture
def batch(tmp_path: Path) -> ClusterBatch:
    claims = tmp_path / "out" / "claims"
    claims.mkdir(parents=True)
    (claims / "token").touch()
    return ClusterBatch(claims, "token", user_config_digest(os.environ), run_variables(os.environ))


@pytest.fixture
async def cell(tmp_path: Path) -> Cell:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "a.txt").write_text("a")
    (tmp_path / "wide.json").write_text("{}")
    task = BatchTask(id="a", prompt="Say hello.", folder=str(tmp_path / "shop"))
    matrix = Matrix(settings=[*settings_files([str(tmp_path / "wide.json")])])
    return plan_cells([task], matrix, {"a": await content_digest(task)})[0]


def test_a_job_reads_on_the_worker_as_it_was_sent(batch: ClusterBatch) -> None:
    task = BatchTask(id="a", prompt="x", folder=Revision(repository="/r"), files={"a": "\u00fc"}, tags=["t"])
    cell = plan_cells([task], Matrix(), {"a": "c"})[0]
    job = ClusterJob(batch, CellAttempt(cell, 2, "session"), cell.key)

    found = JOB.validate_python(JOB.dump_python(job, mode="json"))

    assert found == job
    assert found.attempt.cell.key == cell.key


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            {"version": "0.0.1"}, "it has handrail .*, and this machine 0.0.1. Install the same.", id="version"
        ),
        pytest.param(
            {"token": "another"},
            "it does not see the folder .*out' of this machine. .* file system",
            id="no shared files",
        ),
        pytest.param({"user_config": "x"}, "its user has other settings", id="settings"),
    ],
)
def test_a_machine_that_is_not_fit_for_a_batch_says_why(
    batch: ClusterBatch, change: dict[str, str], problem: str
) -> None:
    assert worker_problem(BATCH.dump_python(batch, mode="json")) == ""

    said = worker_problem(BATCH.dump_python(batch, mode="json") | change)

    assert re.match(problem, said), said


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("shop/a.txt", "the folder of the task 'a' has other content there.", id="folder"),
        pytest.param("wide.json", "wide.json' has other content there.", id="settings"),
    ],
)
async def test_a_worker_that_sees_other_files_runs_nothing(
    batch: ClusterBatch, cell: Cell, tmp_path: Path, name: str, problem: str
) -> None:
    (tmp_path / name).write_text('{"env": {}}')

    answer = await run_job(ClusterJob(batch, CellAttempt(cell, 1, "session"), cell.key), "w")

    assert (answer.end, answer.lost, problem in answer.problem) == (None, "", True)
    assert [each.name for each in batch.claims.iterdir()] == ["token"]


async def test_a_worker_with_another_version_makes_another_key_and_runs_nothing(
    batch: ClusterBatch, cell: Cell
) -> None:
    answer = await run_job(ClusterJob(batch, CellAttempt(cell, 1, "session"), "other key"), "w")

    assert answer.problem == "it makes another key of the cell. Install the same handrail there."


# What a worker answers


def answer_of(cell: Cell, **changes: Any) -> Any:
    result = {
        "key": cell.key,
        "task": "a",
        "model": "default",
        "settings": "wide",
        "trial": 1,
        "status": "solved",
        "why": "completed",
        "seconds": 2.0,
        "dollars": 0.5,
        **changes,
    }
    return {"end": {"result": result, "retryable": False}}


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "another"},
        {"task": "b", "trial": 7},
        {"attempts": 99},
        {"session": "../x"},
        {"unpriced_attempts": 5},
        {},
    ],
)
async def test_a_worker_answers_for_the_cell_that_it_was_given_and_no_other(cell: Cell, changes: Any) -> None:
    attempt = CellAttempt(cell, 2, "session")
    result = attempt_end(attempt, read_answer(answer_of(cell, **changes))).result

    assert (result.key, result.place, result.session) == (cell.key, cell.place, "session")
    assert (result.status, result.attempts, result.seconds, result.dollars) == ("solved", 2, 2.0, 0.5)
    assert result.unpriced_attempts == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"dollars": math.nan},
        {"dollars": math.inf},
        {"dollars": -1.0},
        {"seconds": 1e300},
        {"turns": 10**30},
        {"status": "great"},
        {"why": None},
    ],
)
async def test_an_answer_that_cannot_be_is_an_error_of_the_infrastructure(cell: Cell, changes: Any) -> None:
    end = attempt_end(CellAttempt(cell, 1, "session"), read_answer(answer_of(cell, **changes)))

    assert (end.result.status, end.retryable) == ("infrastructure", False)
    assert "the worker's answer is none" in end.result.text


@pytest.mark.parametrize("data", [None, "text", [1], {"end": {}}, {"end": 5}])
async def test_what_is_no_answer_at_all_is_said(cell: Cell, data: Any) -> None:
    end = attempt_end(CellAttempt(cell, 1, "session"), read_answer(data))

    assert "the worker's answer is none" in end.result.text


@pytest.mark.proves("R6", "R10")
async def test_text_of_a_worker_is_short_and_without_tokens(cell: Cell) -> None:
    token = "sk-ant-api03-" + "A1b2" * 10
    for data in (answer_of(cell, text="x" * 100_000 + token), {"problem": token * 1_000}, {"lost": token * 1_000}):
        text = attempt_end(CellAttempt(cell, 1, "session"), read_answer(data)).result.text

        assert len(text) < 3_000
        assert token not in text
