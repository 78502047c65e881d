"""Starts scheduled prompts with no session open: each is a run of its own, in its folder, that can ask no one."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from handrail.cli.signals import on_signals
from handrail.processes.run import run as run_program
from handrail.records import record
from handrail.schedules import clock
from handrail.schedules.entries import DuePrompt, ScheduledPrompt, Settled, due_text, local_time, missed_text, settle
from handrail.schedules.store import Entries, ScheduleStore

FAILED = 1
LOOK_SECONDS = 5.0
MAX_OUTPUT = 10_000_000
MAX_AT_ONCE = 4
COMMAND = (sys.executable, "-m", "handrail", "-p", "--output-format", "json")


@record
class Start:
    """How prompts are started: what is told of them, and the zone for times."""

    tell: Callable[[dict[str, Any]], None]
    zone: ZoneInfo

    def report(self, kind: str, entry: ScheduledPrompt, text: str, **more: Any) -> None:
        """Tell what happened to a schedule."""
        moment = local_time(clock.now(), self.zone)
        self.tell({"type": kind, "time": moment, "id": entry.id, "folder": entry.folder, "text": text, **more})


async def start_one(entry: ScheduledPrompt, start: Start) -> int:
    """Start one now; the exit code of its run."""
    working = asyncio.ensure_future(_start(DuePrompt(entry, clock.now(), 1, is_last=False), start))

    def stop() -> None:
        working.cancel()

    code = on_signals(stop)
    try:
        ended = await working
    except asyncio.CancelledError:
        ended = FAILED
    return ended if (stopped := code()) is None else stopped


async def start_due(store: ScheduleStore, start: Start, *, stays: bool) -> int:
    """
    Start what is due; 1 if a run failed.

    If it `stays`, it goes on until a signal, and what was due before it began is told, not started. Else some other
    clock calls it, and all that is due is started.
    """
    opened = clock.now() if stays else 0.0
    stop = asyncio.Event()
    code = on_signals(stop.set)
    running: dict[str, asyncio.Task[int]] = {}
    room, failed = asyncio.Semaphore(MAX_AT_ONCE), False
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            settled = await store.change(partial(_take, busy=frozenset(running), opened=opened, zone=start.zone))
            for missed in settled.missed:
                start.report("missed", missed.entry, missed_text(missed, start.zone))
            for due in settled.due:
                running[due.entry.id] = asyncio.create_task(_start_in(room, due, start))
            if not stays and not running:
                break
            wait = LOOK_SECONDS if stays else None
            await asyncio.wait((stopping, *running.values()), timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            ended = {each: task for each, task in running.items() if task.done()}
            failed = failed or any(task.result() != 0 for task in ended.values())
            running = {each: task for each, task in running.items() if each not in ended}
    finally:
        for task in (stopping, *running.values()):
            task.cancel()
        await asyncio.gather(stopping, *running.values(), return_exceptions=True)
    return (FAILED if failed else 0) if (stopped := code()) is None else stopped


def _take(before: Entries, *, busy: frozenset[str], opened: float, zone: ZoneInfo) -> tuple[Entries, Settled]:
    """Take what is due, except for those whose last run still goes on."""
    left = tuple(each for each in before if each.id in busy)
    settled = settle((each for each in before if each.id not in busy), clock.now(), opened, zone)
    return (*left, *settled.remaining), settled


async def _start_in(room: asyncio.Semaphore, due: DuePrompt, start: Start) -> int:
    async with room:
        return await _start(due, start)


async def _start(due: DuePrompt, start: Start) -> int:
    """Run one to its end; its exit code."""
    entry = due.entry
    start.report("started", entry, f"started in {entry.folder}")
    prompt = due_text(due, start.zone).encode()
    try:
        ended = await run_program(
            COMMAND, cwd=entry.folder, env=os.environ, stdin=prompt, timeout=None, max_bytes=MAX_OUTPUT
        )
    except OSError as error:
        problem = f"could not be started in {entry.folder}: {error.strerror}. Remove it, or bring the folder back."
        start.report("ended", entry, problem, exit=FAILED)
        return FAILED
    except asyncio.CancelledError:
        start.report("ended", entry, "was stopped", exit=None)
        raise
    result = _result(ended.stdout)
    session, text = result.get("session_id"), str(result.get("result") or ended.stderr.decode("utf-8", "replace"))
    again = f" (handrail --resume {session})" if session else ""
    start.report(
        "ended", entry, f"ended with {ended.code}{again}: {text.strip()}", exit=ended.code, session=session, result=text
    )
    return ended.code


def _result(output: bytes) -> dict[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
