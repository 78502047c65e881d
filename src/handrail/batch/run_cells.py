"""Runs cells, several at once, and keeps each result before the next cell of the same worker begins."""

import asyncio
from collections.abc import Callable, Sequence

from handrail.batch.cell_run import CellRunner
from handrail.batch.cells import Cell
from handrail.batch.results import CellResult, ResultWriter


async def run_cells(
    cells: Sequence[Cell],
    runner: CellRunner,
    writer: ResultWriter,
    jobs: int,
    on_finish: Callable[[CellResult], None],
) -> None:
    """
    Run the cells, `jobs` at once. Cancelling ends the processes of all that run, and keeps nothing of those.

    Raises:
        BatchError: a result cannot be kept. The others are ended.
    """
    waiting = iter(cells)

    async def work() -> None:
        for cell in waiting:
            result = await runner.run(cell)
            writer.write(result)
            on_finish(result)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(jobs, len(cells))):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
