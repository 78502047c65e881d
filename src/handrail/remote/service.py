"""
A server without its HTTP: runs, triggers and clocks, on what the state folder keeps. One process at a time has it.

    <state>/serve/lock, triggers.json, runs/
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from handrail.conversation.logger import get_logger
from handrail.errors import HandrailError, ScheduleError
from handrail.files.private_folder import make_private_folder
from handrail.records import record
from handrail.remote.config import ServeConfig
from handrail.remote.places import schedule_folder
from handrail.remote.records import RunStore
from handrail.remote.runs import Runs, RunWish
from handrail.remote.triggers import TriggerStore
from handrail.schedules import starting
from handrail.schedules.entries import DuePrompt, due_text, missed_text
from handrail.schedules.starting import DueStarter, ScheduleSource, start_due
from handrail.schedules.store import ScheduleStore
from handrail.schedules.zone import local_zone

log = get_logger(__name__)

PRUNE_SECONDS = 3600.0


@record
class RunService:
    """What the requests of clients work on."""

    config: ServeConfig
    runs: Runs
    triggers: TriggerStore


@asynccontextmanager
async def open_service(
    config: ServeConfig,
    state: Path,
    env: Mapping[str, str],
    tell: Callable[[str], None],
    on_lock: Callable[[], None] = lambda: None,
) -> AsyncIterator[RunService]:
    """
    Take up what is kept, and start runs and schedules while the block runs; HandrailError if another server does.

    `on_lock` is called when the state folder is this server's, before anything is told.
    """
    folder = make_private_folder(state / "serve")
    lock = _lock(folder / "lock")
    try:
        on_lock()
        triggers = TriggerStore(folder / "triggers.json")
        runs = Runs(config, RunStore(folder / "runs"), env, tell)
        runs.open()
        clocks = _Clocks(config, runs, triggers, env, tell)
        stop = asyncio.Event()
        tasks = [
            asyncio.create_task(clocks.follow(ScheduleStore(state / "schedules.json"), clocks.schedules(), stop)),
            asyncio.create_task(clocks.follow(triggers, clocks.by_trigger(), stop)),
            asyncio.create_task(_prune(runs)),
        ]
        try:
            yield RunService(config, runs, triggers)
        finally:
            stop.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await runs.aclose()
    finally:
        os.close(lock)


def _lock(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise HandrailError(
            f"another handrail serve holds {file}. Stop it, or set HANDRAIL_STATE_DIR to another folder."
        ) from error
    return descriptor


async def _prune(runs: Runs) -> None:
    while True:
        await asyncio.sleep(PRUNE_SECONDS)
        runs.prune()


class _Clocks:
    """Starts scheduled runs: durable schedules of listed folders, and triggers with a time."""

    def __init__(
        self,
        config: ServeConfig,
        runs: Runs,
        triggers: TriggerStore,
        env: Mapping[str, str],
        tell: Callable[[str], None],
    ) -> None:
        self._config = config
        self._runs = runs
        self._triggers = triggers
        self._zone = local_zone(env)
        self._tell = tell
        self._problem = ""

    async def follow(self, source: ScheduleSource, starter: DueStarter, stop: asyncio.Event) -> None:
        """Start what is due of a source until the end; what cannot be read is told once, and tried again."""
        while not stop.is_set():
            try:
                await start_due(source, starter, stop, stays=True)
            except ScheduleError as error:
                if str(error) != self._problem:
                    self._problem = str(error)
                    log.warning("%s", error)
                await asyncio.sleep(starting.LOOK_SECONDS)

    def schedules(self) -> DueStarter:
        """Durable schedules: those of listed folders whose operator names a policy for them."""
        return DueStarter(
            partial(self._begin, self._schedule_wish),
            partial(self._miss, "schedule"),
            self._zone,
            wants=lambda entry: schedule_folder(self._config, entry.folder) is not None,
            keep=partial(self._keep, self._schedule_wish),
            runs_elsewhere=partial(self._runs.is_started_by, "schedule"),
            max_at_once=self._config.max_runs,
        )

    def by_trigger(self) -> DueStarter:
        """Triggers with a time."""
        return DueStarter(
            partial(self._begin, self._trigger_wish),
            partial(self._miss, "trigger"),
            self._zone,
            keep=partial(self._keep, self._trigger_wish),
            runs_elsewhere=partial(self._runs.is_started_by, "trigger"),
            max_at_once=self._config.max_runs,
        )

    def _schedule_wish(self, due: DuePrompt) -> RunWish:
        folder = schedule_folder(self._config, due.entry.folder)
        assert folder is not None
        path = due.entry.folder.removeprefix(folder.path).strip("/")
        origin = {"schedule": due.entry.id}
        prompt = due_text(due, self._zone)
        return RunWish(folder.name, prompt, "", origin, path, folder.schedules, id=_run_id("schedule", due))

    def _trigger_wish(self, due: DuePrompt) -> RunWish:
        found = self._triggers.find(due.entry.id)
        assert found is not None
        origin = {"client": found.client, "trigger": found.id, "by": "clock"}
        return RunWish(
            found.folder, found.prompt, found.client, origin, found.path, found.policy, id=_run_id("trigger", due)
        )

    def _keep(self, wish_of: Callable[[DuePrompt], RunWish], due: DuePrompt) -> None:
        """Make the run before its time is settled: killed in between, the same run is found again, not lost."""
        try:
            self._runs.create(wish_of(due))
        except HandrailError as error:
            log.warning("%s was due and is not started: %s", due.entry.id, error)

    async def _begin(self, wish_of: Callable[[DuePrompt], RunWish], due: DuePrompt) -> bool:
        run_id = wish_of(due).id
        return not self._runs.has(run_id) or (await self._runs.wait_for(run_id)).status == "finished"

    def _miss(self, kind: str, due: DuePrompt) -> None:
        if not self._runs.has(_run_id(kind, due)):
            self._tell(missed_text(due, self._zone))


def _run_id(kind: str, due: DuePrompt) -> str:
    """The id of the run of one due time, so that it is made once."""
    return str(uuid5(NAMESPACE_URL, f"{kind}:{due.entry.id}:{due.due:.0f}"))
