"""Work whose output is followed."""

import asyncio
from pathlib import Path

import pytest

from handrail.builtin.support.live_output import OutputCapture, run_with_progress
from handrail.tools.context import ToolContext

pytestmark = pytest.mark.anyio


async def test_work_that_is_cancelled_has_let_go_of_everything_when_its_caller_goes_on(
    tmp_path: Path, ctx: ToolContext
) -> None:
    begun, done = asyncio.Event(), []

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("let go")

    kept = OutputCapture(tmp_path)
    call = asyncio.ensure_future(run_with_progress(work(), kept.fd, ctx))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    kept.close()

    assert done == ["let go"]
