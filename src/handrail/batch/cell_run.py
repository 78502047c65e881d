"""Runs one cell: a working copy, `handrail -p` in it as a process of its own, and the check."""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from handrail.batch.cells import Cell, CellAttempt
from handrail.batch.outcome import CellStatus, CellVerdict, infrastructure_error, judge, read_result
from handrail.batch.results import CellResult, now
from handrail.batch.run_cells import AttemptEnd
from handrail.batch.working_copy import make_copy, remove_copy, write_files
from handrail.builtin.bash.environment import user_environment
from handrail.conversation.redact import Redactor
from handrail.errors import HandrailError
from handrail.processes.own_command import OWN_COMMAND
from handrail.processes.run import Ended
from handrail.processes.run import run as run_program
from handrail.records import record

COMMAND = (*OWN_COMMAND, "-p", "--output-format", "json")
MAX_OUTPUT = 32_000_000
MAX_CHECK_OUTPUT = 10_000_000
NOTHING_SPENT: Mapping[str, Any] = {"total_cost_usd": 0.0}
"""In place of the report of an agent that was not started."""


@record
class CellRunner:
    """Runs cells on this machine, their copies in the folder `work`; with cassettes, if folders for them are given."""

    work: Path
    redactor: Redactor
    record_to: Path | None = None
    replay_from: Path | None = None
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    async def run(self, attempt: CellAttempt) -> AttemptEnd:
        """How an attempt ends. Cancelling it ends its processes."""
        cell = attempt.cell
        folder = self.work / cell.key[:16]
        report = NOTHING_SPENT
        seconds = 0.0
        try:
            await make_copy(cell.task, folder)
            started = time.monotonic()
            ended = await self._run_agent(cell, folder, attempt.session)
            seconds = time.monotonic() - started
            report = read_result(ended.stdout)
            verdict = infrastructure_error(ended, report) or await self._check(cell, folder, ended, report)
        except (OSError, HandrailError) as error:
            can_pass = isinstance(error, OSError)
            verdict = CellVerdict(CellStatus.INFRASTRUCTURE, "this machine", str(error), retryable=can_pass)
        finally:
            await asyncio.to_thread(remove_copy, folder)
        verdict = replace(verdict, text=self.redactor.text(verdict.text))
        return AttemptEnd(result_of(attempt, verdict, report, seconds), verdict.retryable)

    async def _run_agent(self, cell: Cell, folder: Path, session: str) -> Ended:
        return await run_program(
            (*COMMAND, "--session-id", session, *self._flags(cell)),
            cwd=str(folder),
            env=self.env,
            stdin=cell.task.prompt.encode(),
            timeout=cell.limits.seconds,
            max_bytes=MAX_OUTPUT,
        )

    def _flags(self, cell: Cell) -> list[str]:
        limits = cell.limits
        flags: dict[str, object] = {
            "--model": cell.model,
            "--settings": cell.settings.path,
            "--max-turns": limits.turns,
            "--max-budget-usd": limits.dollars,
            "--record": self.record_to and self.record_to / cassette_name(cell),
            "--replay": self.replay_from and self.replay_from / cassette_name(cell),
        }
        given = [f"{flag}={value}" for flag, value in flags.items() if value]
        return [*given, "--trust"] if limits.trust else given

    async def _check(self, cell: Cell, folder: Path, ended: Ended, report: Mapping[str, Any]) -> CellVerdict:
        """Put the files of the check in place, whatever the agent made of them, and run it."""
        task = cell.task
        has_check = bool(task.check.strip())
        check = None
        if has_check and not ended.timed_out:
            if os.path.islink(folder) or not os.path.isdir(folder):  # noqa: PTH112, PTH114, ASYNC240  # at once
                return CellVerdict(CellStatus.FAILED, "the working copy is gone")
            try:
                write_files(folder, task.check_files)
            except OSError as error:
                return CellVerdict(CellStatus.FAILED, "check files", f"they cannot be written: {error}")
            check = await run_program(
                ("/bin/sh", "-c", task.check),
                cwd=str(folder),
                env=user_environment(self.env),  # it may run what the agent wrote, which gets no key either
                timeout=cell.limits.seconds,
                max_bytes=MAX_CHECK_OUTPUT,
            )
        return judge(ended, report, check, has_check=has_check)


def result_of(attempt: CellAttempt, verdict: CellVerdict, report: Mapping[str, Any], seconds: float) -> CellResult:
    """The result of an attempt, with the figures of what its agent reported."""
    cell = attempt.cell
    denials = report.get("permission_denials") or []
    return CellResult(
        cell.key,
        *cell.place,
        status=verdict.status.value,
        why=verdict.why,
        tags=tuple(cell.task.tags),
        seconds=round(seconds, 3),
        turns=report.get("num_turns") or 0,
        dollars=report.get("total_cost_usd"),
        denials=len(denials),
        unasked=sum(bool(denial.get("unasked")) for denial in denials),
        attempts=attempt.number,
        session=attempt.session,
        text=verdict.text,
        finished=now(),
    )


def cassette_name(cell: Cell) -> str:
    """The file of the answers of a cell; it does not depend on the content of the task."""
    *names, trial = cell.place
    return f"{'+'.join(quote(name, safe='') for name in names)}+{trial}.jsonl"
