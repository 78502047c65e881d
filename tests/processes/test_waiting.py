"""Several tasks may wait for one command; the first to learn of its end does not keep it from the others."""

import asyncio
import os
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from handrail.processes.spawn import ProcessSpec, Running, start_stored

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def gated(folder: Path) -> AsyncIterator[tuple[Running, int]]:
    """A command that ends when its input does, and that input."""
    read, write = os.pipe()
    store = os.open(folder / "out", os.O_WRONLY | os.O_CREAT, 0o600)
    running = await start_stored(ProcessSpec(["/bin/cat"], str(folder), {}), read, store, 1000)
    os.close(read)
    os.close(store)
    try:
        yield running, write
    finally:
        await running.stop_and_wait()


async def test_who_waits_learns_of_an_end_that_somebody_else_has_seen(tmp_path: Path) -> None:
    async with gated(tmp_path) as (running, gate):
        waiting = [asyncio.create_task(running.wait()) for _ in range(2)]
        await anyio.wait_all_tasks_blocked()

        os.close(gate)
        while running.poll() is None:  # without a turn of the event loop: it cannot be the one who notices
            select.select([running._call], [], [], 30)

        with anyio.fail_after(10):
            assert {end.code for end in await asyncio.gather(*waiting)} == {0}
