"""TaskUpdate: change, finish, link or delete a task of the list."""

from typing import Any, Literal

from handrail.builtin.services import ToolServices
from handrail.builtin.task_list.cards import task_card
from handrail.builtin.task_list.hooks import objection
from handrail.builtin.task_list.items import DELETED, TaskChange, TaskItems, change_task, check_claim, get_task
from handrail.builtin.task_list.store import LIST, TaskStore
from handrail.builtin.task_list.task_create import MAX_LINE, MAX_TEXT
from handrail.errors import TaskListError, ToolError
from handrail.records import record
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import AgentIdentity, RunContext, ToolContext
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
        self._services = services
        self._list = TaskStore(services)

    def access(self, args: TaskUpdateInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=LIST)

    async def call(self, args: TaskUpdateInput, ctx: ToolContext) -> Output:
        item = self._list.read().by_id.get(args.taskId) if args.status == "completed" else None
        is_new = item is not None and item.status != "completed"
        if item and is_new and (why := await objection(self._services, "TaskCompleted", item, ctx)):
            raise ToolError(f"Task {item.id} is not completed: a hook objects. {why}")
        try:
            done = await self._list.change(lambda items: _apply(items, args, ctx.agent))
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


def _apply(items: TaskItems, args: TaskUpdateInput, agent: AgentIdentity) -> tuple[TaskItems, TaskUpdateResult]:
    item = get_task(items, args.taskId)
    before, owner = item.status, args.owner
    if not agent.is_main:
        mine = (agent.name or agent.id, agent.id)
        check_claim(item, mine, owner=owner, status=args.status)
        if args.status == "in_progress" and not item.owner and owner is None:
            owner = mine[0]
    change = TaskChange(
        subject=args.subject,
        description=args.description,
        active_form=args.activeForm,
        owner=owner,
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
