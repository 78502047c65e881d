"""`handrail batch`: run many tasks, report what came of them, and check files of tasks."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from handrail.batch.cell_run import CellRunner
from handrail.batch.cells import Cell, CellLimits, Matrix, SettingsFile, plan_cells, settings_files
from handrail.batch.outcome import NOT_STARTED
from handrail.batch.report import BatchReport, comparison, current_results, groups, summary
from handrail.batch.results import BatchFolder, CellResult, ResultWriter, missing_cells
from handrail.batch.run_cells import run_cells
from handrail.batch.tasks import BatchTask, TaskProblem, read_tasks
from handrail.batch.working_copy import content_digest, open_work_folder
from handrail.cli.batch_text import BatchProgress, report_lines
from handrail.cli.permission_flags import warn
from handrail.cli.signals import on_signals
from handrail.cli.terminal import ReportScreen
from handrail.conversation.plain import plain, plain_json
from handrail.errors import BatchError, HandrailError
from handrail.session.redactor import redactor_for
from handrail.tools.wording import several

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
    cells = _plan(chosen)
    folder = BatchFolder(Path(chosen.out))
    with folder.lock():
        folder.write_plan(cells)
        results, _ = folder.read_results()
        waiting = missing_cells(cells, results)
        if chosen.record:
            folder.cassettes.mkdir(exist_ok=True)
        before = [results[cell.key] for cell in cells if cell.key in results and results[cell.key].is_final]
        progress = BatchProgress(len(cells), before)
        writer = ResultWriter(folder)
        try:
            with open_work_folder(folder.work_note) as work:
                runner = CellRunner(
                    work,
                    redactor_for(os.environ),
                    chosen.retries,
                    record_to=folder.cassettes.absolute() if chosen.record else None,
                    replay_from=BatchFolder(Path(chosen.replay).absolute()).cassettes if chosen.replay else None,
                )
                code = asyncio.run(_until_signal(waiting, runner, writer, chosen, progress))
        except BatchError as error:
            progress.end_line()
            warn(str(error))
            return FAILED
        finally:
            writer.close()
    progress.end(folder.path, is_stopped=code is not None)
    return code if code is not None else FAILED if progress.infrastructure else 0


async def _until_signal(
    cells: Sequence[Cell], runner: CellRunner, writer: ResultWriter, chosen: argparse.Namespace, progress: BatchProgress
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

    work = asyncio.ensure_future(run_cells(cells, runner, writer, chosen.jobs or os.cpu_count() or 1, finish))

    def stop() -> None:
        work.cancel()

    code = on_signals(stop)
    try:
        await work
    except asyncio.CancelledError:
        return code()
    return None


def _plan(chosen: argparse.Namespace) -> list[Cell]:
    tasks, problems = _tasks_and_problems(Path(chosen.tasks))
    if problems:
        for problem in problems[:-1]:
            warn(_place(chosen.tasks, problem))
        raise HandrailError(f"{_place(chosen.tasks, problems[-1])} Nothing was run.")
    _refuse_results_inside(tasks, Path(chosen.out))
    if chosen.replay and not BatchFolder(Path(chosen.replay)).cassettes.is_dir():
        raise HandrailError(f"--replay: {chosen.replay} has no folder cassettes. Name the --out of a recorded run.")
    settings = [*settings_files([*dict.fromkeys(chosen.settings)])] or [SettingsFile()]
    for each in filter(lambda each: each.path, settings):
        _refuse_broken_settings(each.path)
    limits = CellLimits(chosen.max_turns, chosen.max_budget_usd, chosen.timeout, chosen.trust, bool(chosen.replay))
    models = [*dict.fromkeys(chosen.model)] or [""]
    return plan_cells(tasks, Matrix(models, settings, chosen.trials, limits), asyncio.run(_contents(tasks)))


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
    figures = _figures(found, chosen.by or "column", chosen.compare)
    if chosen.json:
        print(plain_json(figures))
    else:
        print("\n".join(report_lines(figures, ReportScreen(sys.stdout))))
    return 0


def _figures(found: BatchReport, by: str, compare: Sequence[str] | None) -> dict[str, Any]:
    rows = [{"name": name, **summary(each)} for name, each in sorted(groups(found.results, by).items())]
    errors = [each for each in found.results if not each.is_final]
    names = ("task", "model", "settings", "trial", "why", "text", "attempts", "session")
    return {
        "by": by,
        "total": summary(found.results),
        "groups": rows,
        "missing": found.missing,
        "replaced": found.replaced,
        "damaged_lines": found.damaged,
        "infrastructure": [{name: getattr(each, name) for name in names} for each in errors],
        "comparison": comparison(found.results, *compare) if compare else None,
    }
