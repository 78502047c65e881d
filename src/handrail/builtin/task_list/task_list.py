"""TaskList: list all tasks of the session, one line each."""

from typing import Any

from handrail.builtin.services import ToolServices
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.builtin.task_list import store
from handrail.builtin.task_list.cards import task_card
from handrail.builtin.task_list.items import TaskItem, TaskItems
from handrail.builtin.task_list.task_text import task_line
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import PlainInput


class TaskListInput(PlainInput):
    """It takes nothing."""


class TaskList(ReadOnlyTool[TaskListInput]):
    name = "TaskList"
    search_hint = "todo all steps progress status overview"
    input_model = TaskListInput
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._list = store.TaskStore(services)

    def access(self, args: TaskListInput, run: RunContext) -> Access:
        return Access.bookkeeping(reads=store.LIST)

    async def call(self, args: TaskListInput, ctx: ToolContext) -> Output:
        items = self._list.read()
        return Output(
            text="\n".join(task_line(items, item) for item in items.by_id.values()) or "There are no tasks.",
            data={"tasks": [_item_data(items, item) for item in items.by_id.values()]},
            card=task_card("Tasks", items),
        )


def _item_data(items: TaskItems, item: TaskItem) -> dict[str, Any]:
    found: dict[str, Any] = {"id": item.id, "subject": item.subject, "status": item.status}
    if item.owner:
        found["owner"] = item.owner
    return {**found, "blockedBy": list(items.open_blockers(item))}
