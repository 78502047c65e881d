"""`handrail batch`: run many tasks, report what came of them, and check files of tasks."""

import argparse
import asyncio
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.batch.cell_run import CellRunner
from handrail.batch.cells import Cell, CellLimits, CellSettings, Matrix, plan_cells, settings_files
from handrail.batch.outcome import NOT_STARTED
from handrail.batch.report import BatchReport, Places, comparison, current_results, groups, summary
from handrail.batch.results import AttemptLog, BatchFolder, CellResult, missing_cells
from handrail.batch.run_cells import CellExecutor, RunLimits, run_cells
from handrail.batch.seal import Seal, open_seal, read_seal
from handrail.batch.tasks import BatchTask, TaskProblem, read_tasks
from handrail.batch.user_config import run_variables, user_config_digest
from handrail.batch.working_copy import content_digest, open_work_folder
from handrail.cli.batch_text import BatchProgress, report_lines
from handrail.cli.permission_flags import report_failure, warn
from handrail.cli.signals import on_signals
from handrail.cli.terminal import ReportScreen
from handrail.conversation.plain import plain, plain_json
from handrail.errors import BatchError, HandrailError
from handrail.lazy import lazy
from handrail.session.redactor import redactor_for
from handrail.session.state_folder import state_folder
from handrail.tools.wording import several

if TYPE_CHECKING:
    from handrail.batch import cluster, cluster_job
else:  # few batches need the cluster's library
    cluster = lazy("handrail.batch.cluster")
    cluster_job = lazy("handrail.batch.cluster_job")

FAILED = 1
HOPELESS = 3
"""If none of so many cells can be started, the others are not tried."""


def run(chosen: argparse.Namespace) -> int:
    """Do what was asked for."""
    if chosen.what == "check":
        return _check(chosen)
    if chosen.what == "report":
        return _report(chosen)
    return _run(chosen)


# check


def _check(chosen: argparse.Namespace) -> int:
    """0; 1 if something is wrong with the file."""
    tasks, problems = _tasks_and_problems(Path(chosen.tasks))
    if chosen.json:
        print(plain_json({"ok": not problems, "tasks": len(tasks), "problems": [asdict(each) for each in problems]}))
    else:
        for problem in problems:
            print(plain(_place(chosen.tasks, problem)))
        unchecked = sum(not task.check.strip() for task in tasks)
        more = f", {unchecked} of them without a check" if unchecked else ""
        print(several(len(problems), "problem") if problems else f"{several(len(tasks), 'task')}{more}. No problems.")
    return FAILED if problems else 0


def _tasks_and_problems(file: Path) -> tuple[list[BatchTask], list[TaskProblem]]:
    try:
        return read_tasks(file)
    except OSError as error:
        raise HandrailError(f"{file} cannot be read: {error.strerror}. Give a file of tasks.") from error


def _place(file: str, problem: TaskProblem) -> str:
    return f"{file}:{problem.line}: {problem.text}" if problem.line else f"{file}: {problem.text}"


# run


def _run(chosen: argparse.Namespace) -> int:
    """0; 1 if a cell has no result but an error of the infrastructure; after a signal 128 and its number."""
    if chosen.cluster and find_spec("distributed") is None:
        raise HandrailError("--cluster needs one more package. Install it with: pip install 'handrail[cluster]'")
    cells = _plan(chosen)
    folder = BatchFolder(Path(chosen.out))
    with folder.lock():
        seal = open_seal(state_folder(os.environ))
        if not chosen.adopt:
            _refuse_foreign_results(folder, seal)
        results, _ = folder.read_results()
        _warn_of_changes(cells, folder.read_plan(), results)
        folder.write_plan(cells)
        waiting = missing_cells(cells, results)
        if chosen.record:
            folder.cassettes.mkdir(exist_ok=True)
        unfinished = {cell.key for cell in waiting}
        before = [results[cell.key] for cell in cells if cell.key not in unfinished]
        progress = BatchProgress(len(cells), before)
        log = AttemptLog(folder, seal)
        try:
            code = asyncio.run(_until_signal(waiting, folder, log, chosen, progress))
        except BatchError as error:
            progress.end_line()
            report_failure(str(error), as_json=chosen.json)
            return FAILED
        finally:
            log.close()
    progress.end(folder.path, is_stopped=code is not None)
    return code if code is not None else FAILED if progress.infrastructure else 0


async def _until_signal(
    cells: Sequence[Cell], folder: BatchFolder, log: AttemptLog, chosen: argparse.Namespace, progress: BatchProgress
) -> int | None:
    """Run the cells to their end or to a signal; the exit code of the signal."""

    reasons: list[str] = []

    def finish(result: CellResult) -> None:
        if chosen.json:
            print(plain_json(asdict(result)), flush=True)
        progress.add(result)
        reasons.append(result.why)
        if reasons == [NOT_STARTED] * HOPELESS:
            raise BatchError(f"none of the first {HOPELESS} cells could be started: {result.text}")

    async def run_all() -> None:
        async with _executor(chosen, folder, cells) as (executor, slots):
            await run_cells(cells, executor, log, RunLimits(chosen.jobs or slots, chosen.retries), finish)

    work = asyncio.ensure_future(run_all())

    def stop() -> None:
        work.cancel()

    code = on_signals(stop)
    try:
        await work
    except asyncio.CancelledError:
        return code()
    return None


@asynccontextmanager
async def _executor(
    chosen: argparse.Namespace, folder: BatchFolder, cells: Sequence[Cell]
) -> AsyncIterator[tuple[CellExecutor, int]]:
    """What runs the cells, and how many it runs at once."""
    record_to = folder.cassettes.absolute() if chosen.record else None
    replay_from = Path(os.path.abspath(chosen.replay), "cassettes") if chosen.replay else None  # noqa: PTH100, ASYNC240
    if not chosen.cluster or not cells:
        with open_work_folder(folder.work_note) as work:
            yield CellRunner(work, redactor_for(os.environ), record_to, replay_from), os.cpu_count() or 1
        return
    batch = cluster_job.ClusterBatch(
        folder.claims.absolute(),
        f"run-{uuid.uuid4()}",
        cells[0].user_config,
        run_variables(os.environ),
        record_to,
        replay_from,
    )
    async with cluster.open_cluster(chosen.cluster, batch) as executor:
        await executor.check_workers()
        if not (slots := await executor.slots()):
            warn("the cluster has no workers yet. Cells wait until one comes.")
        yield executor, slots or 1


def _plan(chosen: argparse.Namespace) -> list[Cell]:
    tasks, problems = _tasks_and_problems(Path(chosen.tasks))
    if problems:
        for problem in problems[:-1]:
            warn(_place(chosen.tasks, problem))
        raise HandrailError(f"{_place(chosen.tasks, problems[-1])} Nothing was run.")
    _refuse_results_inside(tasks, Path(chosen.out))
    if chosen.replay and not BatchFolder(Path(chosen.replay)).cassettes.is_dir():
        raise HandrailError(f"--replay: {chosen.replay} has no folder cassettes. Name the --out of a recorded run.")
    settings = [*settings_files([*dict.fromkeys(chosen.settings)])] or [CellSettings()]
    for each in filter(lambda each: each.path, settings):
        _refuse_broken_settings(each.path)
    limits = CellLimits(chosen.max_turns, chosen.max_budget_usd, chosen.timeout, chosen.trust, bool(chosen.replay))
    models = [*dict.fromkeys(chosen.model)] or [""]
    matrix = Matrix(models, settings, chosen.trials, limits, user_config_digest(os.environ))
    return plan_cells(tasks, matrix, asyncio.run(_contents(tasks)))


def _refuse_foreign_results(folder: BatchFolder, seal: Seal) -> None:
    if numbers := folder.foreign_lines(seal):
        more = f" and {len(numbers) - 1:,} more" if len(numbers) > 1 else ""
        raise HandrailError(
            f"{folder.results_file}:{numbers[0]}{more}: a result that your handrail did not write on this machine. "
            "Remove it to have its cell run, or give --adopt to take such results as they are."
        )


def _warn_of_changes(cells: Sequence[Cell], plan: Places, results: Mapping[str, CellResult]) -> None:
    """Say what is run again although it has a result."""
    before = [plan.get(cell.place) for cell in cells if cell.key not in results and plan.get(cell.place) != cell.key]
    if changed := sum(key in results and results[key].is_final for key in before if key):
        warn(
            f"{several(changed, 'cell')} changed since the last run and will run again: the task, its folder, the "
            "limits, the version of handrail, or the settings, memory files and variables that are your own."
        )


def _refuse_results_inside(tasks: Sequence[BatchTask], out: Path) -> None:
    for task in tasks:
        if isinstance(task.folder, str) and task.folder and out.resolve().is_relative_to(Path(task.folder).resolve()):
            raise HandrailError(
                f"{out} lies in the folder of the task {task.id!r}, which is copied. Give an --out outside of it."
            )


def _refuse_broken_settings(path: str) -> None:
    """Each run would refuse them, one after the other."""
    try:
        value: Any = json.loads(Path(path).read_text("utf-8-sig"))
    except ValueError as error:
        raise HandrailError(f"--settings: {path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise HandrailError(f"--settings: {path} is not a JSON object.")


async def _contents(tasks: Sequence[BatchTask]) -> dict[str, str]:
    """The hashes of the tasks' folders by task id; each folder is read once."""
    by_folder: dict[str, str] = {}
    for task in tasks:
        if repr(task.folder) not in by_folder:
            by_folder[repr(task.folder)] = await content_digest(task)
    return {task.id: by_folder[repr(task.folder)] for task in tasks}


# report


def _report(chosen: argparse.Namespace) -> int:
    """0; the figures are those of what has run so far."""
    folder = BatchFolder(Path(chosen.folder))
    if not folder.results_file.exists():
        raise HandrailError(f"{chosen.folder} holds no results. Give the folder of --out.")
    results, damaged = folder.read_results()
    found = current_results(results, folder.read_plan(), damaged)
    foreign = len(folder.foreign_lines(read_seal(state_folder(os.environ))))
    figures = _figures(found, chosen.by or "column", chosen.compare, foreign)
    if chosen.json:
        print(plain_json(figures))
    else:
        print("\n".join(report_lines(figures, ReportScreen(sys.stdout))))
    return 0


def _figures(found: BatchReport, by: str, compare: Sequence[str] | None, foreign: int) -> dict[str, Any]:
    rows = [{"name": name, **summary(each)} for name, each in sorted(groups(found.results, by).items())]
    errors = [each for each in found.results if not each.is_final]
    names = ("task", "model", "settings", "trial", "why", "text", "attempts", "session")
    return {
        "by": by,
        "total": summary(found.results),
        "groups": rows,
        "missing": found.missing,
        "replaced": found.replaced,
        "foreign": foreign,
        "damaged_lines": found.damaged,
        "infrastructure": [{name: getattr(each, name) for name in names} for each in errors],
        "comparison": comparison(found.results, *compare) if compare else None,
    }
