"""
What is sent to a worker of a cluster, and what the worker does with it. Nothing here knows the cluster's own library.

The folder of results, the tasks' folders and settings files lie on a file system that all machines share. A worker
checks that it sees what the cell's key was made of before it runs anything.

A scheduler may hand a job out again when a worker is lost. So a worker claims an attempt first, by a file that only one
can make; who comes second runs nothing and names the first.
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from handrail import __version__
from handrail.batch.cell_run import CellRunner, result_of
from handrail.batch.cells import Cell, CellAttempt, settings_digest
from handrail.batch.outcome import MAX_TEXT, NOT_STARTED, CellStatus, CellVerdict
from handrail.batch.results import CellResult, is_sound
from handrail.batch.run_cells import AttemptEnd
from handrail.batch.user_config import run_variables, user_config_digest
from handrail.batch.working_copy import content_digest, open_work_folder
from handrail.conversation.redact import Redactor
from handrail.errors import HandrailError
from handrail.records import record
from handrail.session.redactor import redactor_for

LOST = "worker lost"
SHARED = (
    "The folder of results, the tasks' folders and the settings files must lie on a file system that this machine and "
    "all workers share, under the same paths."
)


@record
class ClusterBatch:
    """What all attempts of a run have in common: the folder of claims, a file in it that workers must see, and more."""

    claims: Path
    token: str
    user_config: str
    variables: Mapping[str, str]
    """Those that choose models and how handrail works; keys are those of the workers."""
    record_to: Path | None = None
    replay_from: Path | None = None
    version: str = __version__


@record
class ClusterJob:
    """One attempt, and the key that its cell has on the machine that sends it."""

    batch: ClusterBatch
    attempt: CellAttempt
    key: str


@record
class ClusterAnswer:
    """How an attempt ended; or why the worker did not begin it; or which worker began it before and was lost."""

    end: AttemptEnd | None = None
    problem: str = ""
    lost: str = ""


BATCH, JOB, ANSWER = TypeAdapter(ClusterBatch), TypeAdapter(ClusterJob), TypeAdapter(ClusterAnswer)


def read_answer(data: object) -> ClusterAnswer:
    """What a worker answered; it may be another program by now."""
    try:
        answer = ANSWER.validate_python(data)
    except ValidationError as error:
        return ClusterAnswer(problem=f"the worker's answer is none: {error.errors()[0]['msg']}")
    if answer.end and not is_sound(answer.end.result):
        return ClusterAnswer(problem="the worker's answer is none: it holds a status or an amount that cannot be")
    return answer


def attempt_end(attempt: CellAttempt, answer: ClusterAnswer) -> AttemptEnd:
    """How an attempt ended, as a result of its own cell, whatever the worker says whose it is."""
    if answer.end:
        reported = answer.end.result
        own = _result(attempt, CellVerdict(CellStatus(reported.status), reported.why[:MAX_TEXT], reported.text), {})
        figures = ("seconds", "turns", "dollars", "denials", "unasked")
        result = replace(own, **{name: getattr(reported, name) for name in figures})
        return AttemptEnd(result, answer.end.retryable and not result.is_final)
    text = f"{answer.lost} began it and was lost." if answer.lost else answer.problem
    verdict = CellVerdict(CellStatus.INFRASTRUCTURE, LOST if answer.lost else NOT_STARTED, text, bool(answer.lost))
    spent: Mapping[str, Any] = {} if answer.lost else {"total_cost_usd": 0.0}
    return AttemptEnd(_result(attempt, verdict, spent), verdict.retryable)


def _result(attempt: CellAttempt, verdict: CellVerdict, spent: Mapping[str, Any]) -> CellResult:
    text = Redactor().text(verdict.text[-MAX_TEXT:])
    return result_of(attempt, replace(verdict, text=text), spent, 0.0)


def worker_problem(data: Mapping[str, Any]) -> str:
    """Why this machine cannot run attempts of a batch; empty if it can. It is asked before anything is run."""
    if data["version"] != __version__:
        return f"it has handrail {__version__}, and this machine {data['version']}. Install the same."
    batch = BATCH.validate_python(data)
    if not (batch.claims / batch.token).is_file():
        return f"it does not see the folder {str(batch.claims.parent)!r} of this machine. {SHARED}"
    try:
        is_same = user_config_digest(environment(batch)) == batch.user_config
    except (OSError, HandrailError) as error:
        return f"its configuration cannot be read: {error}"
    return "" if is_same else "its user has other settings, memory files, skills or plugins. Make them the same there."


def environment(batch: ClusterBatch) -> dict[str, str]:
    """The variables of this machine, with those of the batch in place of those that choose how handrail works."""
    own = run_variables(os.environ)
    return {name: value for name, value in os.environ.items() if name not in own} | dict(batch.variables)


async def run_job(job: ClusterJob, worker: str) -> ClusterAnswer:
    """Run an attempt on this machine, unless it was begun before or this machine is not fit for it."""
    batch, attempt = job.batch, job.attempt
    try:
        if problem := await _input_problem(attempt.cell, job.key):
            return ClusterAnswer(problem=problem)
        claim = batch.claims / attempt.session
        if first := _claimed_before(claim, worker):
            return ClusterAnswer(lost=first)
        with open_work_folder(claim.with_suffix(".work")) as work:
            env = environment(batch)
            runner = CellRunner(work, redactor_for(env), batch.record_to, batch.replay_from, env)
            return ClusterAnswer(await runner.run(attempt))
    except OSError as error:
        return ClusterAnswer(problem=str(error))


async def _input_problem(cell: Cell, key: str) -> str:
    """Why what this machine sees is not what the key was made of."""
    try:
        content = await content_digest(cell.task)
        settings = settings_digest(cell.settings.path) if cell.settings.path else ""
    except (OSError, HandrailError) as error:
        return f"{error}. {SHARED}"
    if content != cell.content:
        return f"the folder of the task {cell.task.id!r} has other content there. {SHARED}"
    if settings != cell.settings.digest:
        return f"the settings file {cell.settings.path!r} has other content there. {SHARED}"
    return "" if cell.key == key else "it makes another key of the cell. Install the same handrail there."


def _claimed_before(claim: Path, worker: str) -> str:
    """Claim an attempt for this worker; the worker that had claimed it before."""
    try:
        descriptor = os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        with open_work_folder(claim.with_suffix(".work")):  # removes the copy that it left, if that lies here
            return claim.read_text("utf-8", "replace")[:200] or "a worker"
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{worker} on {platform.node()}")
        file.flush()
        os.fsync(file.fileno())
    return ""
