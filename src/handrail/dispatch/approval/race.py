"""Asks several at once; the first answer counts, and the others are cancelled."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

from handrail.conversation.logger import get_logger
from handrail.dispatch.approval.once import ResolveOnce

log = get_logger(__name__)

T = TypeVar("T")
Racer: TypeAlias = Callable[[], Awaitable[T | None]]


async def race(
    once: ResolveOnce[T],
    racers: Mapping[str, Racer[T]],
    *,
    watcher: Racer[T],
    on_failure: Callable[[str, BaseException], T | None],
) -> None:
    """
    Ask all until one has answered or none is left. Losers are cancelled and have ended when this returns.

    The failure of a racer is logged, and counts as the answer that `on_failure` gives for it (None = no answer). The
    `watcher` may answer while others are asked, but the race does not wait for it.
    """
    tasks = {asyncio.ensure_future(_run(once, who, racer)): who for who, racer in racers.items()}
    open_tasks = set(tasks)
    watching = asyncio.ensure_future(_run(once, "rules", watcher))
    answered = asyncio.ensure_future(_wait_for_answer(once))
    try:
        while open_tasks and not once.is_resolved:
            done, _ = await asyncio.wait({answered, *open_tasks}, return_when=asyncio.FIRST_COMPLETED)
            open_tasks -= done
            for task in done - {answered}:
                _look(task, tasks[task], on_failure, once)
    finally:
        for task in (answered, watching, *tasks):
            task.cancel()
        await asyncio.gather(answered, watching, *tasks, return_exceptions=True)


async def _wait_for_answer(once: ResolveOnce[T]) -> None:
    await once.wait()


async def _run(once: ResolveOnce[T], who: str, racer: Racer[T]) -> None:
    answer = await racer()
    if answer is not None:
        once.resolve(who, answer)


def _look(
    task: "asyncio.Future[None]", who: str, on_failure: Callable[[str, BaseException], T | None], once: ResolveOnce[T]
) -> None:
    error = None if task.cancelled() else task.exception()
    if error is None:
        return
    log.error("%s was asked about a call and failed", who, exc_info=error)
    if (answer := on_failure(who, error)) is not None:
        once.resolve(who, answer)
