"""Schedules as data: when each is due, and what remains of them when some are. Times are seconds since 1970."""

import math
import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from zoneinfo import ZoneInfo

from handrail.errors import ScheduleError
from handrail.records import record
from handrail.schedules.cron import describe, read_cron, times_after
from handrail.tools.schedules import ScheduleFacts

DAY = 86_400.0
LIFETIME_DAYS = 7
"""Recurring schedules end after so many days, unless a person says otherwise."""
MAX_SCHEDULES = 50
MAX_PROMPT = 20_000
MAX_COUNTED = 1_000


@record
class ScheduledPrompt:
    """A scheduled prompt: by a cron line, or once at a given time."""

    id: str
    prompt: str
    cron: str = ""
    at: float = 0.0
    """When it comes if there is no cron line."""
    recurring: bool = False
    durable: bool = False
    created: float = 0.0
    ends: float = 0.0
    """When a recurring one ends; 0 = it does not."""
    since: float = 0.0
    """What was due up to then is settled."""
    folder: str = ""


@record
class DuePrompt:
    """A prompt that is due now, or was due when no session was open."""

    entry: ScheduledPrompt
    due: float
    """The last time that it was due."""
    count: int
    """How often it was due since it was looked at."""
    is_last: bool
    """It will not come again."""


@record
class Settled:
    """What is left of the schedules, what is due, and what was missed."""

    remaining: tuple[ScheduledPrompt, ...] = ()
    due: tuple[DuePrompt, ...] = ()
    missed: tuple[DuePrompt, ...] = ()


def new_entry(cron: str, prompt: str, now: float, *, recurring: bool, days: int = LIFETIME_DAYS) -> ScheduledPrompt:
    """A schedule that begins now and, if it recurs, ends after so many days (0 = never); ScheduleError if it cannot."""
    ends = now + days * DAY if recurring and days else 0.0
    return ScheduledPrompt(
        os.urandom(4).hex(), _check_prompt(prompt), cron, recurring=recurring, created=now, ends=ends, since=now
    )


def _check_prompt(prompt: str) -> str:
    if not prompt.strip():
        raise ScheduleError("The prompt is empty. Say what is to be done when the time comes.")
    if len(prompt) > MAX_PROMPT:
        raise ScheduleError(f"The prompt has {len(prompt):,} characters, {MAX_PROMPT:,} are kept. Write it to a file.")
    return prompt


def next_time(entry: ScheduledPrompt, zone: ZoneInfo) -> float | None:
    """When it is due next, which may be in the past; None = never again."""
    if not entry.cron:
        return entry.at
    found = next(times_after(read_cron(entry.cron), entry.since, zone), None)
    return None if found is None or _is_over(entry, found) else found


def check_comes(entry: ScheduledPrompt, zone: ZoneInfo, instead: str) -> ScheduledPrompt:
    """The schedule, if it comes before it ends; else ScheduleError, with what to do `instead` (`{days}` are enough)."""
    if next_time(entry, zone) is not None:
        return entry
    first = next(times_after(read_cron(entry.cron), entry.since, zone), None)
    if first is None:
        raise ScheduleError(f"{entry.cron!r} never comes. Change its day or month.")
    days = math.ceil((first - entry.created) / DAY)
    raise ScheduleError(
        f"{entry.cron!r} comes next on {local_time(first, zone)}, after this schedule has ended "
        f"({local_time(entry.ends, zone)}), so it would never come. {instead.format(days=days)}"
    )


def _is_over(entry: ScheduledPrompt, moment: float) -> bool:
    return entry.recurring and 0 < entry.ends < moment


def settle(entries: Iterable[ScheduledPrompt], now: float, opened: float, zone: ZoneInfo) -> Settled:
    """
    What is due of the schedules at a moment. Each is due once, however often its time has come.

    It was missed if its last time was before `opened`: then there was nothing that could have started it.
    """
    remaining, due, missed = list[ScheduledPrompt](), list[DuePrompt](), list[DuePrompt]()
    for entry in entries:
        moment = next_time(entry, zone)
        if moment is None:
            continue
        if moment > now:
            remaining.append(entry)
            continue
        found = _due(entry, now, zone)
        if not found.is_last:
            remaining.append(replace(entry, since=now))
        (missed if entry.durable and found.due < opened else due).append(found)
    return Settled(tuple(remaining), tuple(due), tuple(missed))


def _due(entry: ScheduledPrompt, now: float, zone: ZoneInfo) -> DuePrompt:
    if not entry.recurring:
        moment = next_time(entry, zone)
        assert moment is not None
        return DuePrompt(entry, moment, 1, is_last=True)
    times, last, count = times_after(read_cron(entry.cron), entry.since, zone), 0.0, 0
    for moment in takewhile(lambda each: each <= now and not _is_over(entry, each), times):
        last, count = moment, count + 1
        if count == MAX_COUNTED:
            break
    is_last = next_time(replace(entry, since=now), zone) is None
    return DuePrompt(entry, last if count < MAX_COUNTED else now, count, is_last)


def facts_of(entry: ScheduledPrompt, zone: ZoneInfo) -> ScheduleFacts:
    """A schedule as it is shown."""
    moment = next_time(entry, zone)
    shown = "never" if moment is None else local_time(moment, zone)
    words = describe(read_cron(entry.cron)) if entry.cron else f"once at {shown}"
    if entry.cron and not entry.recurring:
        words = f"once, {shown}"
    return ScheduleFacts(
        id=entry.id,
        prompt=entry.prompt,
        words=words,
        cron=entry.cron,
        recurring=entry.recurring,
        durable=entry.durable,
        next=moment,
        shown_next=shown,
        folder=entry.folder,
    )


def local_time(moment: float, zone: ZoneInfo) -> str:
    """A moment as clocks show it."""
    return f"{datetime.fromtimestamp(moment, zone):%Y-%m-%d %H:%M}"


def due_text(found: DuePrompt, zone: ZoneInfo) -> str:
    """What the model is told when a prompt is due."""
    entry, notes = found.entry, []
    if found.count > 1:
        notes.append(f"(Its time came {found.count} times since it was last looked at; it comes only once.)")
    if found.is_last and entry.recurring:
        notes.append("(It has come for the last time. Create it again if it is still needed.)")
    words = facts_of(entry, zone).words if entry.recurring else "once"
    head = f'<scheduled-prompt id="{entry.id}" schedule="{words}" due="{local_time(found.due, zone)}">'
    return "\n".join((head, entry.prompt, *notes, "</scheduled-prompt>"))


def missed_text(found: DuePrompt, zone: ZoneInfo) -> str:
    """What the person and the model are told of a prompt that was missed."""
    entry, times = found.entry, "" if found.count == 1 else f", the last of {found.count} times"
    again = "It will not come again." if found.is_last else f"It comes again: {facts_of(entry, zone).words}."
    return (
        f"The scheduled prompt {entry.id} was due at {local_time(found.due, zone)}{times}, when no session was open. "
        f"It was not started. {again} Its prompt: {entry.prompt}"
    )
