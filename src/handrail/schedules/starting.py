"""Starts scheduled prompts that are due, with no session open: for `handrail schedule run` and `handrail serve`."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar
from zoneinfo import ZoneInfo

from handrail.records import record
from handrail.schedules import clock
from handrail.schedules.entries import DuePrompt, ScheduledPrompt, Settled, settle
from handrail.schedules.store import Entries

LOOK_SECONDS = 5.0
MAX_AT_ONCE = 4

Result = TypeVar("Result")


class ScheduleSource(Protocol):
    """Where schedules are kept; `ScheduleStore` is one."""

    async def change(self, step: Callable[[Entries], tuple[Entries, Result]]) -> Result:
        """Replace the schedules by those that `step` returns; its result."""
        ...


def _every(_entry: ScheduledPrompt) -> bool:
    return True


def _nothing(_due: DuePrompt) -> None:
    """Nothing has to be kept."""


def _no_other(_schedule: str) -> bool:
    return False


@record
class DueStarter:
    """How prompts are started. `begin` runs one to its end and returns whether that went well."""

    begin: Callable[[DuePrompt], Awaitable[bool]]
    on_missed: Callable[[DuePrompt], None]
    zone: ZoneInfo
    wants: Callable[[ScheduledPrompt], bool] = _every
    """Whether a schedule is for us to start."""
    keep: Callable[[DuePrompt], None] = _nothing
    """Called before a prompt is taken out, so that it is not lost if we die before it begins."""
    runs_elsewhere: Callable[[str], bool] = _no_other
    """Whether the last run of a schedule still goes on, besides those that we began."""
    max_at_once: int = MAX_AT_ONCE


async def start_due(source: ScheduleSource, starter: DueStarter, stop: asyncio.Event, *, stays: bool) -> bool:
    """
    Start what is due; whether all went well.

    If it `stays`, it goes on until `stop`, and what was due before it began is told, not started. Else some other
    clock calls it, and all that is due is started.
    """
    opened = clock.now() if stays else 0.0
    running: dict[str, asyncio.Task[bool]] = {}
    room, is_well = asyncio.Semaphore(starter.max_at_once), True
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            settled = await source.change(partial(_take, starter, busy=frozenset(running), opened=opened))
            for missed in settled.missed:
                starter.on_missed(missed)
            for due in settled.due:
                running[due.entry.id] = asyncio.create_task(_begin(room, starter, due))
            if not stays and not running:
                break
            wait = LOOK_SECONDS if stays else None
            await asyncio.wait((stopping, *running.values()), timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            ended = {each: task for each, task in running.items() if task.done()}
            is_well = is_well and all(task.result() for task in ended.values())
            running = {each: task for each, task in running.items() if each not in ended}
    finally:
        for task in (stopping, *running.values()):
            task.cancel()
        await asyncio.gather(stopping, *running.values(), return_exceptions=True)
    return is_well


def _take(starter: DueStarter, before: Entries, *, busy: frozenset[str], opened: float) -> tuple[Entries, Settled]:
    """Take what is due, except for those whose last run still goes on."""

    def is_left(entry: ScheduledPrompt) -> bool:
        return entry.id in busy or starter.runs_elsewhere(entry.id) or not starter.wants(entry)

    left = tuple(each for each in before if is_left(each))
    settled = settle((each for each in before if each not in left), clock.now(), opened, starter.zone)
    for due in settled.due:
        starter.keep(due)
    return (*left, *settled.remaining), settled


async def _begin(room: asyncio.Semaphore, starter: DueStarter, due: DuePrompt) -> bool:
    async with room:
        return await starter.begin(due)
