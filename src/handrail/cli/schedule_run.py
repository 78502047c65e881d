"""Starts scheduled prompts with no session open: each is a run of its own, in its folder, that can ask no one."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from handrail.cli.signals import on_signals
from handrail.processes.own_command import OWN_COMMAND
from handrail.processes.run import run as run_program
from handrail.records import record
from handrail.schedules import clock
from handrail.schedules.entries import DuePrompt, ScheduledPrompt, due_text, local_time, missed_text
from handrail.schedules.starting import DueStarter, start_due
from handrail.schedules.store import ScheduleStore

FAILED = 1
MAX_OUTPUT = 10_000_000
COMMAND = (*OWN_COMMAND, "-p", "--output-format", "json")
NO_MORE: Mapping[str, Any] = {}


@record
class Start:
    """How prompts are started: what is told of them, and the zone for times."""

    tell: Callable[[dict[str, Any]], None]
    zone: ZoneInfo

    def report(self, kind: str, entry: ScheduledPrompt, text: str, more: Mapping[str, Any] = NO_MORE) -> None:
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


async def start_all_due(store: ScheduleStore, start: Start, *, stays: bool) -> int:
    """Start what is due, and if it `stays`, go on until a signal; 1 if a run failed."""

    async def begin(due: DuePrompt) -> bool:
        return await _start(due, start) == 0

    def tell_missed(missed: DuePrompt) -> None:
        start.report("missed", missed.entry, missed_text(missed, start.zone))

    stop = asyncio.Event()
    code = on_signals(stop.set)
    is_well = await start_due(store, DueStarter(begin, tell_missed, start.zone), stop, stays=stays)
    return (0 if is_well else FAILED) if (stopped := code()) is None else stopped


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
        start.report("ended", entry, problem, {"exit": FAILED})
        return FAILED
    except asyncio.CancelledError:
        start.report("ended", entry, "was stopped", {"exit": None})
        raise
    result = _result(ended.stdout)
    session, text = result.get("session_id"), str(result.get("result") or ended.stderr.decode("utf-8", "replace"))
    again = f" (handrail --resume {session})" if session else ""
    facts = {"exit": ended.code, "session": session, "result": text}
    start.report("ended", entry, f"ended with {ended.code}{again}: {text.strip()}", facts)
    return ended.code


def _result(output: bytes) -> dict[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
