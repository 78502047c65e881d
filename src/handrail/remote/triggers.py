"""Triggers: prompts that a client keeps at a server, to be started by name or on a schedule."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from handrail.errors import HandrailError, HttpRefusalError
from handrail.records import record
from handrail.remote.records import write_private
from handrail.schedules.cron import read_cron
from handrail.schedules.entries import ScheduledPrompt
from handrail.schedules.store import Entries

VERSION = 1
MAX_TRIGGERS = 200

Result = TypeVar("Result")


@record
class Trigger:
    """A prompt with its place. `cron`: when it is started; empty = only when a client asks."""

    id: str
    name: str
    folder: str
    prompt: str
    client: str
    """Who wrote it last: when the clock starts it, that client's rights count."""
    created: float
    path: str = ""
    policy: str = ""
    cron: str = ""
    enabled: bool = True
    since: float = 0.0
    """What was due by the clock up to then is settled."""

    def as_json(self) -> dict[str, Any]:
        """The trigger as clients see it."""
        return {name: value for name, value in asdict(self).items() if name != "since"}


class TriggerStore:
    """All triggers of a server, in one file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._triggers = {each.id: each for each in _read(file)}

    def all(self) -> tuple[Trigger, ...]:
        """Every trigger, the oldest first."""
        return tuple(self._triggers.values())

    def find(self, trigger_id: str) -> Trigger | None:
        """The trigger of an id."""
        return self._triggers.get(trigger_id)

    def keep(self, trigger: Trigger, share: int = MAX_TRIGGERS) -> None:
        """Add a trigger, or replace the one of its id; HttpRefusalError if its client has its share already."""
        others = [each for each in self._triggers.values() if each.id != trigger.id]
        own = sum(each.client == trigger.client for each in others)
        if own >= share or len(others) >= MAX_TRIGGERS:
            raise HttpRefusalError(409, f"There are {len(others)} triggers, {own} of them yours. Remove some first.")
        self._replace({**self._triggers, trigger.id: trigger})

    def remove(self, trigger_id: str) -> None:
        """Remove a trigger."""
        self._replace({name: each for name, each in self._triggers.items() if name != trigger_id})

    def _replace(self, triggers: Mapping[str, Trigger]) -> None:
        write_private(self._file, {"version": VERSION, "triggers": [asdict(each) for each in triggers.values()]})
        self._triggers = dict(triggers)

    async def change(self, step: Callable[[Entries], tuple[Entries, Result]]) -> Result:
        """The triggers that the clock starts, as a source of schedules; what `step` says of their times is kept."""
        before = tuple(map(_entry, filter(_by_clock, self._triggers.values())))
        after, result = step(before)
        times = {each.id: each.since for each in after}
        moved = {
            each.id: replace(each, since=times[each.id])
            for each in self._triggers.values()
            if each.id in times and times[each.id] != each.since
        }
        if moved:
            self._replace({**self._triggers, **moved})
        return result


def new_trigger_id() -> str:
    """An id that no other trigger has, and no run."""
    return f"t{os.urandom(5).hex()}"


def check_cron(line: str) -> str:
    """The line as it is kept; ScheduleError if it is not understood."""
    return read_cron(line).text if line else ""


def _by_clock(trigger: Trigger) -> bool:
    return trigger.enabled and bool(trigger.cron)


def _entry(trigger: Trigger) -> ScheduledPrompt:
    return ScheduledPrompt(
        trigger.id,
        trigger.prompt,
        trigger.cron,
        recurring=True,
        durable=True,
        created=trigger.created,
        since=trigger.since,
        folder=trigger.folder,
    )


NAMES = tuple(each.name for each in fields(Trigger))


def _read(file: Path) -> Iterable[Trigger]:
    try:
        kept = json.loads(file.read_text("utf-8"))
        if kept["version"] > VERSION:
            raise HandrailError(f"{file} was written by a newer handrail. Go on with that one.")
        return [Trigger(**{name: each[name] for name in NAMES}) for each in kept["triggers"]]
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise HandrailError(f"The triggers in {file} cannot be read ({error}). Repair it, or move it away.") from error
