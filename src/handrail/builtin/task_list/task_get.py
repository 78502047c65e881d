"""TaskGet: show one task of the list with all its details."""

from handrail.builtin.services import ToolServices
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.builtin.task_list.cards import task_card
from handrail.builtin.task_list.items import TaskItem, TaskItems
from handrail.builtin.task_list.store import LIST, TaskStore
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output, json_text
from handrail.tools.plain_input import Field, PlainInput


class TaskGetInput(PlainInput):
    taskId: str = Field(coerce_numbers_to_str=True, description="The id of the task.")  # noqa: N815


class TaskGet(ReadOnlyTool[TaskGetInput]):
    name = "TaskGet"
    search_hint = "todo list show details description dependencies"
    input_model = TaskGetInput
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._list = TaskStore(services)

    def access(self, args: TaskGetInput, run: RunContext) -> Access:
        return Access.bookkeeping(reads=LIST)

    async def call(self, args: TaskGetInput, ctx: ToolContext) -> Output:
        items = self._list.read()
        item = items.by_id.get(args.taskId)
        if item is None:
            text = f"There is no task {args.taskId!r}. TaskList shows those that there are."
            return Output(text=text, data={"task": None})
        found = {
            "id": item.id,
            "subject": item.subject,
            "description": item.description,
            "status": item.status,
            "blocks": list(items.blocks(item.id)),
            "blockedBy": list(item.blocked_by),
        }
        card = task_card(f"Task {item.id}", items, (item.id, *item.blocked_by))
        return Output(text=describe_task(items, item), data={"task": found}, card=card)


def describe_task(items: TaskItems, item: TaskItem) -> str:
    """The task for the model."""
    lines = [f"Task {item.id} ({item.status}): {item.subject}", item.description]
    if item.owner:
        lines.append(f"Owner: {item.owner}")
    if item.blocked_by:
        lines.append(f"Blocked by: {', '.join(item.blocked_by)}")
    if blocked := items.blocks(item.id):
        lines.append(f"Blocks: {', '.join(blocked)}")
    if item.metadata:
        lines.append(f"Metadata: {json_text(item.metadata)}")
    return "\n".join(line for line in lines if line)
