"""TaskUpdate: change, finish, link or delete a task of the list."""

from typing import Any, Literal

from handrail.builtin.services import ToolServices
from handrail.builtin.task_list.cards import task_card
from handrail.builtin.task_list.items import DELETED, TaskChange, TaskItems, change_task, get_task
from handrail.builtin.task_list.store import LIST, TaskStore
from handrail.builtin.task_list.task_create import MAX_LINE, MAX_TEXT
from handrail.errors import TaskListError
from handrail.records import record
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool


class TaskUpdateInput(PlainInput):
    taskId: str = Field(coerce_numbers_to_str=True, description="The id of the task.")  # noqa: N815
    subject: str | None = Field(default=None, min_length=1, max_length=MAX_LINE, description="A new subject.")
    description: str | None = Field(default=None, max_length=MAX_TEXT, description="A new description.")
    activeForm: str | None = Field(default=None, max_length=MAX_LINE, description="A new active form.")  # noqa: N815
    status: Literal["pending", "in_progress", "completed", "deleted"] | None = Field(
        default=None, description="Its new status; deleted removes it."
    )
    addBlocks: list[str] | None = Field(default=None, description="Tasks that must wait for this one.")  # noqa: N815
    addBlockedBy: list[str] | None = Field(default=None, description="Tasks that come before it.")  # noqa: N815
    owner: str | None = Field(default=None, max_length=MAX_LINE, description="Who does it.")
    metadata: dict[str, Any] | None = Field(default=None, description="Keys to set; null deletes one.")


@record
class TaskUpdateResult:
    """The list after a change, the changed fields, and the status before and after."""

    items: TaskItems
    names: tuple[str, ...]
    before: str
    after: str


class TaskUpdate(Tool[TaskUpdateInput]):
    name = "TaskUpdate"
    search_hint = "todo list status done complete owner dependencies delete"
    input_model = TaskUpdateInput
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._list = TaskStore(services)

    def access(self, args: TaskUpdateInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=LIST)

    async def call(self, args: TaskUpdateInput, ctx: ToolContext) -> Output:
        try:
            done = await self._list.change(lambda items: _apply(items, args))
        except TaskListError as error:  # an answer, so that other calls of the same turn go on
            return Output(
                text=str(error),
                data={"success": False, "taskId": args.taskId, "updatedFields": [], "error": str(error)},
                card=Card(title="Tasks", detail="nothing was changed", body=str(error), tone="warning"),
            )
        data: dict[str, Any] = {"success": True, "taskId": args.taskId, "updatedFields": list(done.names)}
        if done.before != done.after:
            data["statusChange"] = {"from": done.before, "to": done.after}
        return Output(text=_summary(args.taskId, done), data=data, card=task_card("Tasks", done.items))


def _apply(items: TaskItems, args: TaskUpdateInput) -> tuple[TaskItems, TaskUpdateResult]:
    before = get_task(items, args.taskId).status
    change = TaskChange(
        subject=args.subject,
        description=args.description,
        active_form=args.activeForm,
        owner=args.owner,
        status=args.status,
        add_blocks=tuple(args.addBlocks or ()),
        add_blocked_by=tuple(args.addBlockedBy or ()),
        metadata=args.metadata or {},
    )
    after, names = change_task(items, args.taskId, change)
    return after, TaskUpdateResult(after, names, before, args.status or before)


def _summary(which: str, done: TaskUpdateResult) -> str:
    if done.after == DELETED:
        return f"Task {which} was deleted."
    if not done.names:
        return f"Task {which} is as it was: nothing of that is new."
    status = f", {done.before} -> {done.after}" if done.before != done.after else ""
    waits = done.items.open_blockers(done.items.by_id[which]) if done.after == "in_progress" else ()
    note = f" It still waits for {', '.join(waits)}." if waits else ""
    return f"Task {which} was changed ({', '.join(done.names)}{status}).{note}"
