"""TaskCreate: add a task to the list of the session."""

from typing import Any

from handrail.builtin.services import ToolServices
from handrail.builtin.task_list.cards import task_card
from handrail.builtin.task_list.hooks import objection
from handrail.builtin.task_list.items import TaskItems, add_task, remove_task
from handrail.builtin.task_list.store import LIST, TaskStore
from handrail.errors import ToolError
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool

MAX_LINE = 500
MAX_TEXT = 20_000


class TaskCreateInput(PlainInput):
    subject: str = Field(min_length=1, max_length=MAX_LINE, description="What is to be done, in one line.")
    description: str = Field(max_length=MAX_TEXT, description="What it takes, and when it is done.")
    activeForm: str | None = Field(  # noqa: N815  # the name that models know
        default=None, max_length=MAX_LINE, description="The subject while it is being done, e.g. 'Running tests'."
    )
    metadata: dict[str, Any] | None = Field(default=None, description="Anything else to be kept with it.")


class TaskCreate(Tool[TaskCreateInput]):
    name = "TaskCreate"
    search_hint = "todo list plan steps add new work item"
    input_model = TaskCreateInput
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._list = TaskStore(services)

    def access(self, args: TaskCreateInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=LIST)

    async def call(self, args: TaskCreateInput, ctx: ToolContext) -> Output:
        def step(items: TaskItems) -> tuple[TaskItems, TaskItems]:
            after = add_task(items, args.subject, args.description, args.activeForm or "", args.metadata or {})
            return after, after

        after = await self._list.change(step)
        item = after.by_id[str(after.last)]
        if why := await objection(self._services, "TaskCreated", item, ctx):
            await self._list.change(lambda items: (remove_task(items, item.id), None))
            raise ToolError(f"The task was not created: a hook objects. {why}")
        return Output(
            text=f"Task {after.last} was added: {args.subject}",
            data={"task": {"id": str(after.last), "subject": args.subject}},
            card=task_card("Tasks", after),
        )
