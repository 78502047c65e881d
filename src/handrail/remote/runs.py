"""
All runs of a server: started, listed, stopped, and kept over a restart.

A run that the server did not see to its end goes on when the server starts again, unless its operator does not want
that, its client or folder is no longer listed, or it went on too often already: then it is `interrupted`, and a client
can resume it.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from handrail.conversation.logger import get_logger
from handrail.errors import HandrailError, HttpRefusalError
from handrail.records import record
from handrail.remote.config import ServeConfig
from handrail.remote.events import EventLog, last_line
from handrail.remote.places import find_place
from handrail.remote.records import RunStatus, RunStore, ServedRunRecord
from handrail.remote.run import ServedRun, summary_of
from handrail.remote.shares import next_run, refuse_to_wait
from handrail.transcripts.writer import new_id

log = get_logger(__name__)

MAX_RESTARTS = 3
DAY = 86_400.0
GO_ON = "You were stopped. Go on from there."
FAILED = "handrail failed at this run; the log of the server says more."


@record
class RunWish:
    """A run that is wanted, by whom (empty = a schedule), and how the wish came."""

    folder: str
    prompt: str
    client: str
    origin: Mapping[str, str]
    path: str = ""
    policy: str = ""
    partial: bool = False
    id: str = ""


class Runs:
    """The runs of one server. `tell` gets a line for its log when a run begins or ends."""

    def __init__(
        self,
        config: ServeConfig,
        store: RunStore,
        env: Mapping[str, str],
        tell: Callable[[str], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._store = store
        self._env = env
        self._tell = tell
        self._now = now
        self._records: dict[str, ServedRunRecord] = {}
        self._logs: dict[str, EventLog] = {}
        self._running: dict[str, ServedRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._starts: Counter[str] = Counter()
        """When each client's last run was started, counted in starts."""
        self._changed = asyncio.Event()
        self._is_closing = False

    # The start and the end of the server

    def open(self) -> None:
        """Take up what the last server left."""
        for found in self._store.read():
            if isinstance(found, str):
                log.warning("%s", found)
            else:
                self._records[found.id] = found
        self.prune()
        for run in list(self._records.values()):
            self._settle(run)
        self._start_next()

    def prune(self) -> None:
        """Forget the runs that ended too long ago; their sessions are kept as all are."""
        oldest = self._now() - self._config.keep_days * DAY
        for run in list(self._records.values()):
            if not run.is_open and run.ended < oldest and run.id not in self._tasks:
                self._store.remove(run.id)
                del self._records[run.id]

    def _settle(self, run: ServedRunRecord) -> None:
        """Say how a run of the last server stands now."""
        if run.status != "running":
            return
        if result := _result_of(self._store, run.id):
            self._keep(replace(run, status="finished", ended=self._now(), result=result))
            return
        problem = "the server ended while it ran"
        if not self._config.resumes:
            problem = f"{problem}, and runs are not resumed by themselves"
        elif run.restarts >= MAX_RESTARTS:
            problem = f"{problem}, for the {run.restarts + 1}. time"
        else:
            self._keep(replace(run, status="waiting", restarts=run.restarts + 1, problem=problem))
            return
        self._keep(replace(run, status="interrupted", ended=self._now(), problem=problem))

    async def aclose(self) -> None:
        """End all runs at once. Their records stay as those of a killed server: the next one takes them up."""
        self._is_closing = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # What clients ask for

    def create(self, wish: RunWish) -> ServedRunRecord:
        """Start a run, or let it wait for room; HttpRefusalError if it may not be. One of a known id is that one."""
        if wish.id in self._records:
            return self._records[wish.id]
        place = find_place(self._config, wish.client, wish.folder, wish.path, wish.policy)
        self._check_room(wish.client)
        run = ServedRunRecord(
            id=wish.id or new_id(),
            folder=wish.folder,
            policy=place.policy_name,
            prompt=wish.prompt,
            status="waiting",
            created=self._now(),
            path=wish.path,
            client=wish.client,
            origin=wish.origin,
            partial=wish.partial,
        )
        self._keep(run)
        self._start_next()
        return self._records[run.id]

    def _check_room(self, client: str) -> None:
        running = Counter(self._records[run_id].client for run_id in self._tasks)
        waiting = Counter(run.client for run in self._records.values() if run.status == "waiting")
        if problem := refuse_to_wait(self._config, client, running, waiting):
            raise HttpRefusalError(503, problem)

    def find(self, client: str, run_id: str) -> ServedRunRecord:
        """A run of a folder that the client may use; HttpRefusalError if there is none."""
        run = self._records.get(run_id)
        if run is None or run.folder not in self._config.clients[client].folders:
            raise HttpRefusalError(404, f"There is no run {run_id!r}.")
        return run

    def all(self, client: str) -> list[ServedRunRecord]:
        """Every run of the folders that the client may use, the newest first."""
        allowed = self._config.clients[client].folders
        return [run for run in reversed(self._records.values()) if run.folder in allowed]

    def questions(self, run_id: str) -> list[dict[str, Any]]:
        """The open questions of a run."""
        running = self._running.get(run_id)
        return running.open_questions() if running else []

    def answer(self, client: str, run_id: str, said: Mapping[str, Any]) -> None:
        """Answer a question of a run; HttpRefusalError if the client may not, or the answer does not count."""
        self.find(client, run_id)
        if not self._config.clients[client].answers:
            raise HttpRefusalError(403, "You may not answer questions here. The operator of the server can allow it.")
        running = self._running.get(run_id)
        if running is None:
            raise HttpRefusalError(409, "The run is not under way, so it asks nothing.")
        running.questions.answer(client, said)

    def stop(self, client: str, run_id: str) -> ServedRunRecord:
        """Stop a run; one that is over stays as it is."""
        run = self.find(client, run_id)
        if run.status == "waiting":
            stopped = self._keep(replace(run, status="stopped", ended=self._now(), problem=f"stopped by {client}"))
            self._close_log(run_id)
            return stopped
        if (running := self._running.get(run_id)) is not None:
            running.stop()
            return self._keep(replace(run, problem=f"stopped by {client}"))
        return run

    def resume(self, origin: Mapping[str, str], run_id: str, prompt: str | None) -> ServedRunRecord:
        """
        Let a run go on; HttpRefusalError if it is under way, or has ended and there is nothing new to say.

        From now on it is the run of the client that `origin` names: of its name, and of its address.
        """
        client = origin["client"]
        run = self.find(client, run_id)
        if run.is_open or run_id in self._tasks:
            raise HttpRefusalError(409, "The run is under way. Stop it first, or wait for its end.")
        if run.status == "finished" and prompt is None:
            raise HttpRefusalError(400, "The run has finished. Give a prompt, with which it goes on.")
        find_place(self._config, client, run.folder, run.path, run.policy)
        self._check_room(client)
        self._keep(
            replace(
                run,
                status="waiting",
                prompt=prompt or GO_ON,
                is_said=False,
                prompts=run.prompts + 1,
                client=client,
                origin={**run.origin, **origin},
                problem="",
                result={},
            )
        )
        self._start_next()
        return self._records[run_id]

    def follow(self, run_id: str, after: int) -> AsyncIterator[bytes]:
        """The lines of a run after so many, to its end."""
        return self._log_of(run_id).follow(after)

    # What schedules ask for

    def is_started_by(self, name: str, value: str) -> bool:
        """Whether a run with this in its origin is under way."""
        return any(run.is_open and run.origin.get(name) == value for run in self._records.values())

    def has(self, run_id: str) -> bool:
        """Whether there is a run of this id."""
        return run_id in self._records

    async def wait_for(self, run_id: str) -> ServedRunRecord:
        """The run when it has ended."""
        while (run := self._records[run_id]).is_open:
            await self._changed.wait()
        return run

    # How they run

    def _keep(self, run: ServedRunRecord, *, on_disk: bool = True) -> ServedRunRecord:
        if on_disk:
            self._store.write(run)
        self._records[run.id] = run
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        return run

    def _log_of(self, run_id: str) -> EventLog:
        """The lines of a run; those of an open one are shared by all that read them."""
        known = self._logs.get(run_id) or EventLog(self._store.events_file(run_id))
        if self._records[run_id].is_open:
            known.is_over = False
            self._logs[run_id] = known
        return known

    def _close_log(self, run_id: str) -> None:
        if (events := self._logs.pop(run_id, None)) is not None:
            events.close()

    def _start_next(self) -> None:
        """Start runs that wait, as far as there is room."""
        waiting = [run for run in self._records.values() if run.status == "waiting" and run.id not in self._tasks]
        running = Counter(self._records[run_id].client for run_id in self._tasks)
        while not self._is_closing and (run := next_run(self._config, waiting, running, self._starts)):
            waiting.remove(run)
            running[run.client] += 1
            self._starts[run.client] = max(self._starts.values(), default=0) + 1
            self._tasks[run.id] = task = asyncio.create_task(self._work(run.id))
            task.add_done_callback(partial(_report_failure, run.id))

    async def _work(self, run_id: str) -> None:
        events = self._log_of(run_id)
        try:
            await self._run(run_id, events)
        except HandrailError as error:
            self._end(run_id, "interrupted", str(error))
        finally:
            if self._records[run_id].is_open and not self._is_closing:
                self._end(run_id, "interrupted", FAILED)
            self._close_log(run_id)
            self._running.pop(run_id, None)
            del self._tasks[run_id]
            self._start_next()

    async def _run(self, run_id: str, events: EventLog) -> None:
        run = self._records[run_id]
        if run.status != "waiting":  # it was stopped before it began
            return
        place = find_place(self._config, run.client, run.folder, run.path, run.policy)
        events.open()
        running = ServedRun(run, place, events, self._env, on_begin=partial(self._note_said, run_id))
        self._running[run_id] = running
        running.announce()  # before the record says so: from now on the last line is not that of an older result
        self._keep(replace(run, status="running", started=self._now()))
        self._tell(f"run {run_id} begins: {_about(run)}")
        await running.work()
        status: RunStatus = "stopped" if running.is_stopped else "finished"
        self._end(run_id, status, self._records[run_id].problem if running.is_stopped else "", running.result)

    def _note_said(self, run_id: str) -> None:
        if not self._records[run_id].is_said:
            self._keep(replace(self._records[run_id], is_said=True))

    def _end(self, run_id: str, status: RunStatus, problem: str, result: Mapping[str, Any] | None = None) -> None:
        run = replace(self._records[run_id], status=status, ended=self._now(), problem=problem, result=result or {})
        try:
            self._keep(run)
        except HandrailError as error:  # the next server finds it at work still, and goes by its last line
            run = self._keep(replace(run, status="interrupted", problem=str(error)), on_disk=False)
        self._tell(f"run {run_id} is {run.status}{f': {run.problem}' if run.problem else ''}")


def _report_failure(run_id: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (failure := task.exception()) is not None:
        log.error("the run %s failed", run_id, exc_info=failure)


def _result_of(store: RunStore, run_id: str) -> dict[str, Any]:
    """What came of a run, if its last line is the result; empty if it is not."""
    try:
        line = json.loads(last_line(store.events_file(run_id)))
    except ValueError:
        return {}
    return summary_of(line) if isinstance(line, dict) and line.get("type") == "result" else {}


def _about(run: ServedRunRecord) -> str:
    by = ", ".join(f"{name} {value}" for name, value in run.origin.items())
    return f"folder {run.folder}, policy {run.policy}, {by}"
