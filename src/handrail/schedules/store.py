"""
The schedules that outlive their session, of all folders of a person, in one file that only the person can write.

A session that starts what is due takes it out under a lock, so that it starts once, also if several are open. A project
cannot bring schedules with it: the file lies in the state folder.
"""

import asyncio
import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from handrail.errors import ScheduleError
from handrail.files.private_folder import make_private_folder
from handrail.schedules.cron import read_cron
from handrail.schedules.entries import MAX_SCHEDULES, ScheduledPrompt

VERSION = 1
LOCK_SECONDS, LOCK_STEP = 10.0, 0.005
NAMES = tuple(field.name for field in fields(ScheduledPrompt))
KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "float": (float, int), "bool": (bool,)}

Result = TypeVar("Result")
Entries = tuple[ScheduledPrompt, ...]


class ScheduleStore:
    """The file. It is made with the first schedule."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def stamp(self) -> tuple[int, int]:
        """Changes whenever the file does."""
        try:
            found = self.file.stat()
        except OSError:
            return (0, 0)
        return found.st_mtime_ns, found.st_ino

    def read(self) -> Entries:
        """All schedules; ScheduleError if the file is damaged or newer than this program."""
        try:
            content = json.loads(self.file.read_text("utf-8"))
            version = int(content["version"])
            entries = tuple(map(_from_json, content["schedules"])) if version <= VERSION else ()
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, LookupError, TypeError, ScheduleError) as error:
            raise ScheduleError(
                f"The schedules in {self.file} cannot be read ({error}). None of them is started. Repair the file, or "
                "move it away."
            ) from error
        if version > VERSION:
            raise ScheduleError(f"{self.file} was written by a newer handrail. Go on with that one.")
        return entries

    async def change(self, step: Callable[[Entries], tuple[Entries, Result]]) -> Result:
        """
        Replace the schedules by those that `step` returns, under the lock; its result.

        Nothing is awaited after `step`, so a caller that is cancelled has either not begun or gets the result.
        """
        try:
            lock = make_private_folder(self.file.parent) / f"{self.file.name}.lock"
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                await _acquire(descriptor, lock)
                before = self.read()
                after, result = step(before)
                if after != before:
                    self._write(after)
                return result
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ScheduleError(f"{self.file} cannot be written: {error.strerror}. Nothing was changed.") from error

    def _write(self, entries: Entries) -> None:
        draft = self.file.with_suffix(".draft")  # only the holder of the lock writes it
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"version": VERSION, "schedules": [asdict(each) for each in entries]}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.file)


def add_entry(entries: Entries, entry: ScheduledPrompt) -> Entries:
    """One schedule more; ScheduleError if its folder has too many."""
    if sum(each.folder == entry.folder for each in entries) >= MAX_SCHEDULES:
        raise ScheduleError(f"There are {MAX_SCHEDULES} schedules here already. Remove some first.")
    return (*entries, entry)


async def _acquire(descriptor: int, lock: Path) -> None:
    """Wait for the lock without holding anything up; closing the file releases it."""
    for _ in range(int(LOCK_SECONDS / LOCK_STEP)):
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(LOCK_STEP)
    raise ScheduleError(
        f"Another process has held {lock} for {LOCK_SECONDS:g} seconds. Nothing was changed. Try again."
    )


def _from_json(kept: dict[str, Any]) -> ScheduledPrompt:
    entry = ScheduledPrompt(**{name: kept[name] for name in NAMES})
    for field in fields(ScheduledPrompt):
        kind = field.type if isinstance(field.type, str) else field.type.__name__
        if not isinstance(getattr(entry, field.name), KINDS[kind]):
            raise TypeError(f"{field.name} is no {kind}")
    if entry.cron:
        read_cron(entry.cron)
    return entry
