"""What a worker of a cluster does with a job: it runs it once, and only if it sees what the sender saw."""

import os
import re
from pathlib import Path

import pytest

from handrail.batch.cells import Cell, CellAttempt, Matrix, plan_cells, settings_files
from handrail.batch.cluster_job import BATCH, JOB, ClusterBatch, ClusterJob, run_job, worker_problem
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
