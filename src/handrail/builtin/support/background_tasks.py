"""
The background tasks of a session: started by Bash, Monitor or Agent, read by TaskOutput, stopped by TaskStop.

Each has two files in the session's folder: `<id>.output` with its output, and `<id>.json` with its state. A resumed
session loads them; a task that was running when handrail was killed is listed as unknown and does not run any more. All
tasks end with their session.

The model is told of each end once: that it was is written down after the words are in the transcript, and a session
that was killed in between finds them there.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from handrail.builtin.services import ToolServices, usual_quota
from handrail.builtin.support.command_output import readable
from handrail.builtin.support.exit_notes import exit_notes, shell_code
from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, Message, notes_in, results_in
from handrail.errors import HandrailError
from handrail.files.private_folder import make_private_folder
from handrail.processes.spawn import End, ProcessSpec, start_stored
from handrail.records import record

VERSION = 1
MAX_EVENTS = 50
MAX_EVENT_CHARS = 500
MAX_NEWS_BYTES = 65_536
MAX_REPORT_CHARS = 30_000
AGENT = "local_agent"
NOTICE = "task_notification"
SAVED_FIELDS = (
    *("id", "kind", "text", "description", "cwd", "owner", "call", "subtype", "name", "team"),
    *("started", "status", "code", "ended", "told", "note", "number", "earlier"),
)

ENDS = ("completed", "failed", "killed", "unknown")
ENDED_WITH_US = "does not run any more: it was ended when the session broke off, how far it got is not known"


class Work(Protocol):
    """What runs in the background: a command, or a sub-agent."""

    def poll(self) -> End | None:
        """How it ended, if it has."""
        ...

    async def wait(self) -> End: ...

    async def stop_and_wait(self) -> End: ...


@record
class TaskRequest:
    """
    What is started in the background, and for whom.

    `kind` is `local_bash`, `monitor` or `local_agent`, `owner` the agent that started it, `call` the id of its call,
    `subtype` the type of a sub-agent, `name` and `team` what it is called there.
    """

    kind: str
    text: str
    description: str = ""
    owner: str = "main"
    call: str = ""
    subtype: str = ""
    name: str = ""
    team: str = ""


class BackgroundTask:
    """One command or sub-agent in the background."""

    def __init__(self, folder: Path, id: str, cwd: str, request: TaskRequest) -> None:  # noqa: A002
        self.id = id
        self.kind = request.kind
        self.text = request.text
        self.description = request.description
        self.owner = request.owner
        self.call = request.call
        self.subtype = request.subtype
        self.name = request.name
        self.team = request.team
        self.number = 1
        """How often a task of this id was started: a sub-agent keeps its id when it goes on."""
        self.cwd = cwd
        self.started = time.time()
        self.ended: float | None = None
        self.status = "running"
        """`running`, `completed`, `failed`, `killed` or `unknown`."""
        self.code: int | None = None
        self.note = ""
        """Why it was stopped, and how much output was lost."""
        self.output = folder / f"{id}.output"
        self._record = folder / f"{id}.json"
        self._running: Work | None = None
        self._closing: Callable[[], None] = lambda: None
        self._seconds: float | None = None
        self._stopped = False
        self.told = False
        """Whether the model was told that it ended, and the transcript holds that."""
        self.earlier: list[str] = []
        """What the model has to be told yet of earlier tasks of this id."""
        self._announced: set[str] = set()
        self.seen = 0
        """How many bytes of output were sent as events."""

    def attend(self, running: Work, closing: Callable[[], None], seconds: float | None) -> None:
        """Record that it runs; `closing` is called at its end, `seconds` is its time limit."""
        self._running, self._closing, self._seconds = running, closing, seconds
        self.save()

    def look(self) -> str:
        """Its status now."""
        if self._running is not None and (end := self._running.poll()) is not None:
            self._finish(end)
        return self.status

    async def wait(self, seconds: float) -> str:
        """Wait until it ends or the time is up, and return its status."""
        if self._running is not None:
            try:
                async with asyncio.timeout(seconds):
                    await self._running.wait()
            except TimeoutError:
                return self.look()
        return self.look()

    async def stop(self) -> None:
        """Stop it and everything it started."""
        if self._running is not None:
            self._stopped = True
            await self._running.stop_and_wait()
            self.look()

    def _finish(self, end: End) -> None:
        self._running = None
        self._closing()
        self.code = None if self.kind == AGENT else shell_code(end.code)
        self.ended = time.time()
        self.status = "killed" if self._stopped or end.why else "completed" if end.code == 0 else "failed"
        self.note = "" if self._stopped else "; ".join(exit_notes(end, self._seconds))
        self.save()

    @property
    def label(self) -> str:
        """What results call it: no other task, and no earlier one of its id, is called so."""
        return f"Task {self.id}" + (f" (run {self.number})" if self.number > 1 else "")

    @property
    def title(self) -> str:
        """What the notice of its end begins with, which no other notice does."""
        if self.kind != AGENT:
            return f"Background task {self.id} ({self.description or self.text[:80]})"
        run = f", run {self.number}" if self.number > 1 else ""
        member = f"team member {self.name}, " if self.team else ""
        return f"The {member}sub-agent {self.id}{run} ({self.subtype}: {self.description})"

    def mark_reported(self) -> None:
        """Record that the model was told that it ended, and its predecessors too."""
        is_over = self.status != "running"
        if self.earlier or (is_over and not self.told):
            self.told, self.earlier = is_over, []
            self.save()

    def untold(self, history: Sequence[Message]) -> list[str]:
        """The notices that the model has not read yet."""
        if not self.earlier and (self.told or self.status == "running"):
            return []
        read = tuple(notes_in(history, NOTICE))
        earlier = [each for each in self.earlier if not any(each in text for text in read)]
        is_untold = self.status != "running" and not self.told and not self.is_known_from(history)
        return [*earlier, notice(self)] if is_untold else earlier

    def announce(self, history: Sequence[Message]) -> list[str]:
        """The notices for a message that wakes the session, each once: it may still be on its way to the model."""
        new = [text for text in self.untold(history) if text not in self._announced]
        self._announced |= set(new)
        return new

    @property
    def is_announced(self) -> bool:
        """Whether a message about its end was handed out."""
        return self.status != "running" and any(text.startswith(self.title) for text in self._announced)

    def is_known_from(self, history: Sequence[Message]) -> bool:
        """Whether the model has read of its end: in a notice, or in the result of a call."""
        if any(self.title in text for text in notes_in(history, NOTICE)):
            return True
        ends = (f"{self.label} was ", *(f"{self.label}: {status}" for status in ENDS))
        return any(text.startswith(ends) for text in results_in(history))

    def save(self) -> None:
        """Save its state; a reader sees the old file or the new one."""
        text = json.dumps({"version": VERSION} | {name: getattr(self, name) for name in SAVED_FIELDS})
        draft = self._record.with_suffix(f".{os.urandom(4).hex()}")
        draft.touch(0o600)
        draft.write_text(text, "utf-8")
        draft.replace(self._record)

    def news(self) -> list[str]:
        """The complete lines since the last call; the last line counts as complete once the task has ended."""
        try:
            with self.output.open("rb") as file:
                file.seek(self.seen)
                data = file.read(MAX_NEWS_BYTES)
        except FileNotFoundError:
            return []
        whole = len(data) if self.status != "running" or len(data) == MAX_NEWS_BYTES else data.rfind(b"\n") + 1
        self.seen += whole
        return readable(data[:whole].decode("utf-8", "replace")).splitlines()


class BackgroundTasks:
    """The background tasks of one session."""

    def __init__(self, state: Path, quota: Callable[[], int] = usual_quota) -> None:
        self.folder = state / "tasks"
        self._quota = quota
        self._tasks = {task.id: task for task in _load_tasks(self.folder)}

    async def start(self, request: TaskRequest, command: ProcessSpec, closing: Callable[[], None]) -> BackgroundTask:
        """Start a command in the background; raises OSError if it could not be started."""
        make_private_folder(self.folder)
        task = BackgroundTask(self.folder, os.urandom(4).hex(), command.cwd, request)
        store = os.open(task.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            running = await start_stored(replace(command, hello=0.0), nothing, store, self._quota())
        finally:
            os.close(store)
            os.close(nothing)
        task.attend(running, closing, command.timeout)
        self._tasks[task.id] = task
        return task

    def add(self, id: str, cwd: str, request: TaskRequest, work: Work) -> BackgroundTask:  # noqa: A002
        """Take up work that runs already, under its own id; one of that id that has ended gives way."""
        make_private_folder(self.folder)
        task = BackgroundTask(self.folder, id, cwd, request)
        if before := self._tasks.get(id):
            task.number = before.number + 1
            task.earlier = [*before.earlier, *([] if before.told or before.look() == "running" else [notice(before)])]
        task.output.touch(0o600)
        task.attend(work, lambda: None, None)
        self._tasks[id] = task
        return task

    def get(self, id: str) -> BackgroundTask | None:  # noqa: A002
        """The task of that id."""
        return self._tasks.get(id)

    def all(self) -> tuple[BackgroundTask, ...]:
        """All tasks, oldest first, with their status now."""
        for task in self._tasks.values():
            task.look()
        return tuple(sorted(self._tasks.values(), key=lambda task: task.started))

    def attachments(
        self, is_heard_by: Callable[[str], bool] = lambda _owner: True, history: Sequence[Message] = ()
    ) -> Iterable[Attachment]:
        """
        Notifications for the next turn: lines of monitors, and tasks that ended, of the owners that are heard.

        The next one is asked for when the one before is in the history: then it is recorded that the model knows.
        """
        heard = [task for task in self.all() if is_heard_by(task.owner)]
        lines = [line for task in heard for line in (*_monitor_lines(task), *task.untold(history))]
        if lines:
            yield Attachment(NOTICE, (Text("\n".join(lines)),))
        for task in heard:
            task.mark_reported()

    async def aclose(self) -> None:
        """Stop all tasks that still run."""
        await asyncio.gather(*(task.stop() for task in self._tasks.values()))


def _monitor_lines(task: BackgroundTask) -> list[str]:
    if task.kind != "monitor":
        return []
    events = task.news()
    lines = [f"Monitor {task.id} ({task.description}): {line[:MAX_EVENT_CHARS]}" for line in events[-MAX_EVENTS:]]
    if len(events) > MAX_EVENTS:
        lines.insert(0, f"({len(events) - MAX_EVENTS} earlier lines of monitor {task.id} are in {task.output}.)")
    return lines


def notice(task: BackgroundTask) -> str:
    """What the model learns when a task has ended."""
    note = f" ({task.note})" if task.note else ""
    if task.kind == AGENT:
        return _agent_notice(task, note)
    how = ENDED_WITH_US if task.status == "unknown" else f"has ended: {task.status}, exit code {task.code}{note}"
    return f"{task.title} {how}. Its output is in {task.output}."


def _agent_notice(task: BackgroundTask, note: str) -> str:
    """What the model learns when a sub-agent has ended: its report, or how it can go on."""
    if task.status == "unknown":
        return f"{task.title} {ENDED_WITH_US}. Agent with resume={task.id!r} lets it go on with what it knows."
    try:
        report = task.output.read_text("utf-8", "replace").strip()
    except OSError:
        report = ""
    cut = f"\n[The report goes on in {task.output}.]" if len(report) > MAX_REPORT_CHARS else ""
    said = f"Its report:\n{report[:MAX_REPORT_CHARS]}{cut}" if report else "It left no report."
    is_idle = task.team and task.status == "completed"
    how = "is idle; SendMessage wakes it" if is_idle else f"has ended: {task.status}{note}"
    return f"{task.title} {how}. {said}"


def _load_tasks(folder: Path) -> list[BackgroundTask]:
    """Load the tasks of an earlier run of the session."""
    found: list[BackgroundTask] = []
    if not folder.is_dir():
        return found
    for path in sorted(folder.glob("*.json")):
        kept: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if kept.get("version", VERSION) > VERSION:
            raise HandrailError(f"{path} was written by a newer handrail. Use that one to resume the session.")
        about = {name: str(kept[name]) for name in TaskRequest.__annotations__ if name in kept}
        task = BackgroundTask(folder, kept["id"], kept["cwd"], TaskRequest(**about))
        task.started, task.ended, task.code = kept["started"], kept["ended"], kept["code"]
        task.status = "unknown" if kept["status"] == "running" else kept["status"]
        task.told, task.note, task.number = kept.get("told", True), kept.get("note", ""), kept.get("number", 1)
        task.earlier = [str(each) for each in kept.get("earlier", ())]
        found.append(task)
    return found


_OF_SESSIONS: dict[Path, BackgroundTasks] = {}


def tasks_of(services: ToolServices) -> BackgroundTasks:
    """The tasks of a session, shared by its tools and the session itself."""
    tasks = _OF_SESSIONS.get(services.state)
    if tasks is None:  # to make it, folders are looked at
        tasks = _OF_SESSIONS[services.state] = BackgroundTasks(services.state, services.output_quota)
    return tasks


async def close_tasks(services: ToolServices) -> None:
    """Stop the background tasks of a session."""
    if (tasks := _OF_SESSIONS.pop(services.state, None)) is not None:
        await tasks.aclose()
