"""The schedules of a session: what is due wakes it when it is idle. Nothing is loaded before there is a schedule."""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.conversation.blocks import Json, Text
from handrail.conversation.messages import UserMessage
from handrail.errors import ScheduleError
from handrail.lazy import lazy
from handrail.schedules import clock

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from handrail.schedules import cron, entries, store, zone
    from handrail.tools.schedules import ScheduleFacts
else:
    cron = lazy("handrail.schedules.cron")
    entries = lazy("handrail.schedules.entries")
    store = lazy("handrail.schedules.store")
    zone = lazy("handrail.schedules.zone")

LOOK_SECONDS = 5.0
"""So often an idle session looks whether another program has changed the schedules of its folder."""
UNSEEN: Any = ((0, 0), ())
MAX_REMEMBERED = 1_000
WAKE_SECONDS = (60.0, 3600.0)
NOT_WAITING = (
    "This session ends with its answer, so nothing could start a prompt later. A durable schedule of CronCreate starts "
    "in later sessions of this folder and with `handrail schedule run`."
)


class SessionSchedules:
    """Those of the session alone, and the durable ones of its folder, in `file` (None = the session keeps no files)."""

    def __init__(self, folder: str, file: Path | None, env: Callable[[], Mapping[str, str]], *, stays: bool) -> None:
        self._folder = os.path.realpath(folder)
        self._file = file
        self._env = env
        self._stays = stays
        self._opened = clock.now()
        self._own: tuple[entries.ScheduledPrompt, ...] = ()
        self._changed = asyncio.Event()
        self._seen: tuple[tuple[int, int], tuple[entries.ScheduledPrompt, ...]] = UNSEEN
        self._next_times: dict[tuple[str, float], float | None] = {}
        self._problem = ""
        self.on_missed: Callable[[str], None] = lambda _text: None
        """Called with what was due when no session was open."""
        self.on_warning: Callable[[str], None] = lambda _text: None

    # What the tools do

    async def create(self, line: str, prompt: str, *, recurring: bool, durable: bool) -> "ScheduleFacts":
        """Add a prompt that comes when the cron line says so."""
        if not durable and not self._stays:
            raise ScheduleError(NOT_WAITING)
        now, here = clock.now(), self._zone()
        entry = entries.new_entry(cron.read_cron(line).text, prompt, now, recurring=recurring)
        entries.check_comes(entry, here, "Set recurring to false: then it comes that one time.")
        entry = replace(entry, durable=durable, folder=self._folder)
        if durable:
            await self._store().change(lambda before: (store.add_entry(before, entry), None))
        else:
            self._own = store.add_entry(self._own, entry)
        self._changed.set()
        return entries.facts_of(entry, here)

    async def wake(self, seconds: float, prompt: str) -> "ScheduleFacts":
        """Add a prompt that comes once, after so many seconds, at least a minute and at most an hour."""
        if not self._stays:
            raise ScheduleError(NOT_WAITING)
        now, here = clock.now(), self._zone()
        least, most = WAKE_SECONDS
        entry = entries.new_entry("", prompt, now, recurring=False)
        entry = replace(entry, at=now + min(max(seconds, least), most), folder=self._folder)
        self._own = store.add_entry(self._own, entry)
        self._changed.set()
        return entries.facts_of(entry, here)

    def all(self) -> "tuple[ScheduleFacts, ...]":
        """Every schedule, the next first."""
        here = self._zone()
        found = (entries.facts_of(each, here) for each in (*self._own, *self._durable()))
        return tuple(sorted(found, key=lambda each: each.next or 0))

    async def remove(self, schedule_id: str) -> "ScheduleFacts":
        """Remove a schedule; ScheduleError if the session and its folder have none of that id."""
        here = self._zone()
        found = next((each for each in (*self._own, *self._durable()) if each.id == schedule_id), None)
        if found is None:
            raise ScheduleError(f"There is no schedule {schedule_id!r}. CronList shows those that there are.")
        if found.durable:
            await self._store().change(lambda before: (tuple(each for each in before if each.id != found.id), None))
        self._own = tuple(each for each in self._own if each.id != found.id)
        return entries.facts_of(found, here)

    def own_facts(self) -> list[Json]:
        """The schedules of the session alone, as hooks know them."""
        if not self._own:
            return []
        here = self._zone()
        facts = (entries.facts_of(each, here) for each in self._own)
        return [
            {"id": each.id, "schedule": each.cron or each.words, "recurring": each.recurring, "prompt": each.prompt}
            for each in facts
        ]

    # What wakes an idle session

    async def next_prompt(self) -> UserMessage:
        """
        The next prompt that is due, as soon as it is: give it to `Session.drive`.

        What was missed is told with the next prompt. To be cancelled loses nothing.
        """
        while True:
            self._changed.clear()
            due = await self._take_due() if self._own or self._has_file() else ()
            if due:
                here = self._zone()
                return UserMessage(tuple(Text(entries.due_text(each, here)) for each in due))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._changed.wait()

    def _has_file(self) -> bool:
        return self._file is not None and os.path.exists(self._file)  # noqa: PTH110  # costs less

    async def _take_due(self) -> "tuple[entries.DuePrompt, ...]":
        """Take what is due: it is this session's to start. Nothing is awaited after the first was taken."""
        try:
            now, here = clock.now(), self._zone()
            settled = entries.Settled()
            if any(self._is_due(each, now) for each in self._durable()):
                settled = await self._store().change(self._take_durable)
            own = entries.settle(self._own, now, 0.0, here)
            self._problem = ""
        except ScheduleError as error:
            self._seen = UNSEEN
            if str(error) != self._problem:
                self._problem = str(error)
                self.on_warning(self._problem)
            return ()
        self._own = own.remaining
        for missed in settled.missed:
            self.on_missed(entries.missed_text(missed, here))
        return (*settled.due, *own.due)

    def _take_durable(
        self, before: "tuple[entries.ScheduledPrompt, ...]"
    ) -> "tuple[tuple[entries.ScheduledPrompt, ...], entries.Settled]":
        mine = tuple(each for each in before if each.folder == self._folder)
        settled = entries.settle(mine, clock.now(), self._opened, self._zone())
        others = (each for each in before if each.folder != self._folder)
        return (*others, *settled.remaining), settled

    def _durable(self) -> "tuple[entries.ScheduledPrompt, ...]":
        """Those of this folder, read again only when the file has changed."""
        if not self._has_file():
            self._seen = UNSEEN
            return ()
        found = self._store()
        stamp = found.stamp()
        if stamp != self._seen[0]:
            self._seen = stamp, tuple(each for each in found.read() if each.folder == self._folder)
        return self._seen[1]

    def _zone(self) -> "ZoneInfo":
        return zone.local_zone(self._env())

    def _store(self) -> "store.ScheduleStore":
        if self._file is None:
            raise ScheduleError("This session keeps no files, so no schedule can outlive it. Leave out `durable`.")
        return store.ScheduleStore(self._file)

    def _is_due(self, entry: "entries.ScheduledPrompt", now: float) -> bool:
        moment = self._next_time(entry)
        return moment is None or moment <= now  # one that has ended is taken out too

    def _next_time(self, entry: "entries.ScheduledPrompt") -> float | None:
        key = (entry.id, entry.since)
        if key not in self._next_times:
            if len(self._next_times) > MAX_REMEMBERED:
                self._next_times.clear()
            self._next_times[key] = entries.next_time(entry, self._zone())
        return self._next_times[key]

    def _pause(self) -> float:
        """How long nothing is due."""
        known = (*self._own, *self._seen[1])
        if not known or self._problem:
            return LOOK_SECONDS
        now = clock.now()
        waits = [moment - now for each in known if (moment := self._next_time(each)) is not None]
        return max(0.05, min(LOOK_SECONDS, *waits))
