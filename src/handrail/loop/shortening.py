"""Making the history shorter before a request, by whoever was handed in for that."""

import asyncio

from handrail.conversation.stream import StreamFailure
from handrail.loop.setup import Compact, Shortened, Situation
from handrail.tools.abort import AbortReason, AbortSignal

TOO_LONG = ("too long", "context length", "context window", "maximum context", "too large", "too many tokens")


def too_long(failure: StreamFailure) -> bool:
    """Whether the model refused the request because of its length, as far as its words tell."""
    words = failure.message.lower()
    return failure.status in {400, 413} and any(hint in words for hint in TOO_LONG)


async def shortened(
    compact: Compact, situation: Situation, signal: AbortSignal, seconds: float | None
) -> Shortened | None:
    """What to put in the history's place. It may take as long as an answer, so it can be interrupted like one."""
    task = asyncio.ensure_future(compact(situation))
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
