"""Background tasks of an agent: tells the model of their ends, and stops them with the session."""

import asyncio
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Json, Text
from handrail.conversation.messages import Attachment, Message, UserMessage
from handrail.errors import HandrailError
from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    from handrail.builtin.support import background_tasks
    from handrail.session import agent_mail
else:
    agent_mail = lazy("handrail.session.agent_mail")
    background_tasks = lazy("handrail.builtin.support.background_tasks")

TASKS = "handrail.builtin.support.background_tasks"
MAIL = "handrail.session.agent_mail"
REPL = "handrail.builtin.repl.interpreter"
SANDBOX = "handrail.processes.sandbox.confine"
FOREVER = 1e8
KINDS = {"local_bash": "shell", "local_agent": "subagent"}
AGENTS = ("local_agent",)
MAX_SHOWN = 1_000


def task_attachments(
    services: Callable[[], ToolServices],
    is_heard_by: Callable[[str], bool],
    history: Sequence[Message],
    *,
    resumed: bool = False,
) -> Iterable[Attachment]:
    """The notes of background tasks for an agent, by owner; `resumed`: also those of earlier runs."""
    tasks = _loaded_module(TASKS)
    if tasks is None and resumed and (services().state / "tasks").is_dir():
        tasks = background_tasks
    return tasks.tasks_of(services()).attachments(is_heard_by, history) if tasks else ()


def mail_attachments(
    services: Callable[[], ToolServices], agent: str, history: Sequence[Message], *, resumed: bool = False
) -> Iterable[Attachment]:
    """What other agents have written to an agent; `resumed`: also before."""
    mail = _loaded_module(MAIL)
    if mail is None and resumed and (services().state / "mail").is_dir():
        mail = agent_mail
    return mail.mail_of(services()).attachments(agent, history) if mail else ()


async def next_notification(
    services: Callable[[], ToolServices],
    is_heard_by: Callable[[str], bool],
    history: Sequence[Message],
    *,
    kinds: Collection[str] = (),
) -> UserMessage | None:
    """
    A message that says which background task has ended, or what an agent has written, as soon as there is something.

    None if no task of these kinds runs (without `kinds`, of any) and nothing was written. What a message tells is
    recorded as told when the history holds it; it is handed out once.
    """
    while True:
        tasks, mail = _loaded_module(TASKS), _loaded_module(MAIL)
        if tasks is None and mail is None:
            return None
        known = [each for each in tasks.tasks_of(services()).all() if is_heard_by(each.owner)] if tasks else []
        wanted = [task for task in known if not kinds or task.kind in kinds]
        letters = mail.mail_of(services()).take_new(history) if mail else ()
        lines = [line for task in wanted for line in task.announce(history)]
        if letters or lines:
            lines += [line for task in known for line in task.announce(history)]
            told = "\n".join(("<task-notification>", *lines, "</task-notification>"))
            return UserMessage((*([Text(told)] if lines else []), *map(Text, letters)))
        running = [task for task in wanted if task.status == "running"]
        if not running:
            return None
        waiting = [asyncio.ensure_future(task.wait(FOREVER)) for task in running]
        if mail:
            waiting.append(asyncio.ensure_future(mail.mail_of(services()).wait_for_lead()))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


async def end_tasks(services: Callable[[], ToolServices]) -> None:
    """The session is over: its background tasks end, its interpreter, and the sandbox that they ran in."""
    if repl := _loaded_module(REPL):
        await repl.close_interpreter(services())
    if tasks := _loaded_module(TASKS):
        await tasks.close_tasks(services())
    if mail := _loaded_module(MAIL):
        mail.close_mail(services())
    if _loaded_module(SANDBOX) and (sandbox := services().sandbox) is not None:
        sandbox.close()


@record
class TaskFacts:
    """A background task as programs see it."""

    id: str
    kind: str
    description: str
    status: str
    output: str
    call: str = ""
    subtype: str = ""
    prompt: str = ""


def unheard_tasks(services: Callable[[], ToolServices]) -> tuple[TaskFacts, ...]:
    """Tasks of this run whose end the model does not know yet."""
    tasks = _loaded_module(TASKS)
    known = tasks.tasks_of(services()).all() if tasks else ()
    return tuple(_facts(task) for task in known if not task.told and not task.is_announced)


async def stop_task(services: Callable[[], ToolServices], task_id: str) -> None:
    """End a background task; HandrailError if there is none of that id."""
    tasks = _loaded_module(TASKS)
    task = tasks.tasks_of(services()).get(task_id) if tasks else None
    if task is None:
        raise HandrailError(f"There is no background task {task_id!r}; it may have ended. Look at the list of tasks.")
    await task.stop()


def running_tasks(services: Callable[[], ToolServices]) -> list[Json]:
    """The tasks that run now, as hooks know them."""
    tasks = _loaded_module(TASKS)
    running = [task for task in tasks.tasks_of(services()).all() if task.status == "running"] if tasks else []
    return [
        {
            "id": task.id,
            "type": KINDS.get(task.kind, task.kind),
            "status": task.status,
            "description": _clip(task.description or task.text),
            "command": _clip(task.text),
        }
        for task in running
    ]


def _clip(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… [+{len(text) - MAX_SHOWN} chars]"


async def task_over(services: Callable[[], ToolServices], task_id: str) -> TaskFacts:
    """The task, when it has ended."""
    task = _loaded_module(TASKS).tasks_of(services()).get(task_id)
    await task.wait(FOREVER)
    return _facts(task)


def _facts(task: Any) -> TaskFacts:
    shown = task.description or task.text[:200]
    prompt = task.text if task.kind in AGENTS else ""
    return TaskFacts(task.id, task.kind, shown, task.status, str(task.output), task.call, task.subtype, prompt)


def _loaded_module(name: str) -> Any:
    """The module, if it is loaded; a thread may be loading it right now."""
    module = sys.modules.get(name)
    half_made = module is not None and getattr(module.__spec__, "_initializing", False)
    return None if half_made else module
