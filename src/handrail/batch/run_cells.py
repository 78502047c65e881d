"""Runs cells, several at once: what an executor makes of each attempt is kept before the next one begins."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from handrail.batch.cells import Cell, CellAttempt
from handrail.batch.results import AttemptLog, CellResult
from handrail.records import record

FIRST_DELAY, LONGEST_DELAY = 5.0, 120.0


@record
class AttemptEnd:
    """How an attempt ended; `retryable`: another may end differently."""

    result: CellResult
    retryable: bool


class CellExecutor(Protocol):
    """Where cells are run: on this machine, or on a cluster."""

    async def run(self, attempt: CellAttempt) -> AttemptEnd:
        """How an attempt ends. It begins at most once, and cancelling this ends its processes."""
        ...


@record
class RunLimits:
    """How many cells run at once, and how often one that the infrastructure ended is tried again."""

    jobs: int = 1
    retries: int = 2
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


async def run_cells(
    cells: Sequence[Cell],
    executor: CellExecutor,
    log: AttemptLog,
    limits: RunLimits,
    on_finish: Callable[[CellResult], None],
) -> None:
    """
    Run the cells. Cancelling ends the processes of all that run, and keeps no result of those.

    Raises:
        BatchError: a result cannot be kept. The others are ended.
    """
    waiting = iter(cells)

    async def work() -> None:
        for cell in waiting:
            on_finish(await _run_cell(cell, executor, log, limits))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(limits.jobs, len(cells))):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _run_cell(cell: Cell, executor: CellExecutor, log: AttemptLog, limits: RunLimits) -> CellResult:
    """The result of a cell, after its last attempt."""
    retries = 0
    while True:
        end = await executor.run(log.begin(cell))
        result = log.end(end.result)
        if not end.retryable or retries == limits.retries:
            return result
        await limits.sleep(min(LONGEST_DELAY, FIRST_DELAY * 2**retries))
        retries += 1
