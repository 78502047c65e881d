"""Waiting for others as a run waits for an answer: until they are done, somebody interrupts, or the time is over."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from handrail.tools.abort import AbortReason, AbortSignal

Result = TypeVar("Result")


async def heeding(work: Coroutine[Any, Any, Result], signal: AbortSignal, seconds: float | None) -> Result | None:
    """What comes of the work; None when it was interrupted. Then nothing of it runs any more."""
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
