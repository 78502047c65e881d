"""TaskStop: end a background task."""

from handrail.builtin.background.task_output import find_task
from handrail.builtin.services import ToolServices
from handrail.builtin.support.background_tasks import tasks_of
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool


class TaskStopInput(PlainInput):
    task_id: str | None = Field(default=None, description="The id of the task.")
    shell_id: str | None = Field(default=None, description="An older name of task_id.")


class TaskStop(Tool[TaskStopInput]):
    name = "TaskStop"
    aliases = ("KillShell", "KillBash")
    search_hint = "end kill cancel background shell command"
    input_model = TaskStopInput
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: TaskStopInput, run: RunContext) -> Access:
        return Access.bookkeeping(width="exclusive")

    async def validate(self, args: TaskStopInput, ctx: ToolContext) -> Refuse | None:
        if not (args.task_id or args.shell_id):
            return Refuse("No task was named. Give task_id.")
        return None

    async def call(self, args: TaskStopInput, ctx: ToolContext) -> Output:
        task = find_task(tasks_of(self._services), args.task_id or args.shell_id or "")
        running = task.look() == "running"
        await task.stop()
        message = f"{task.label} was stopped." if running else f"{task.label} was over already: {task.status}."
        data = {"message": message, "task_id": task.id, "task_type": task.kind, "command": task.text}
        return Output(text=message, data=data, card=Card(title=f"Task {task.id}", detail=task.status))
