"""Waiting that an interrupt or a deadline can end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from handrail.tools.abort import AbortReason, AbortSignal

Result = TypeVar("Result")


async def run_or_abort(work: Coroutine[Any, Any, Result], signal: AbortSignal, seconds: float | None) -> Result | None:
    """Return the result of the work, or None if it was interrupted or took too long. Nothing of it runs afterwards."""
    task = asyncio.ensure_future(work)
    child = signal.child()

    def stop(_reason: AbortReason) -> None:
        task.cancel()

    child.listen(stop)
    try:
        await asyncio.wait((task,), timeout=seconds)
    finally:
        child.release()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
    return None if task.cancelled() else task.result()
