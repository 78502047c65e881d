"""TaskOutput: the status and output of a background task."""

from handrail.builtin.services import ToolServices
from handrail.builtin.support.background_tasks import BackgroundTask, BackgroundTasks, tasks_of
from handrail.builtin.support.command_output import ShownOutput, output_limit, read_output
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.errors import ToolError
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import Field, PlainInput

EMPTY = ShownOutput("")


class TaskOutputInput(PlainInput):
    task_id: str = Field(description="The id of the task.")
    block: bool = Field(default=True, description="Wait until it ends.")
    timeout: float = Field(default=30_000, ge=0, le=600_000, description="Milliseconds to wait at the most.")


class TaskOutput(ReadOnlyTool[TaskOutputInput]):
    name = "TaskOutput"
    aliases = ("BashOutput", "AgentOutputTool")
    search_hint = "background shell command status result wait"
    input_model = TaskOutputInput
    max_result_chars = None
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: TaskOutputInput, run: RunContext) -> Access:
        return Access.bookkeeping(width="shared")

    async def call(self, args: TaskOutputInput, ctx: ToolContext) -> Output:
        task = find_task(tasks_of(self._services), args.task_id)
        status = await task.wait(args.timeout / 1000) if args.block else task.look()
        limit = output_limit(self._services.env.get("BASH_MAX_OUTPUT_LENGTH", ""))
        size = task.output.stat().st_size if task.output.exists() else 0
        spoken = read_output(task.output, size, limit, limit // 3) if size else EMPTY
        code = "" if task.code is None else f", exit code {task.code}"
        notice = spoken.notice(str(task.output), ctx.options.tools()) if spoken.cut else ""
        note = f"({task.note})" if task.note else ""
        retrieved = "success" if status != "running" else "timeout" if args.block else "not_ready"
        about = {
            "task_id": task.id,
            "task_type": task.kind,
            "status": task.status,
            "description": task.description,
            "output": spoken.text,
            "exitCode": task.code,
        }
        text = "\n".join(filter(None, (f"{task.label}: {status}{code}", notice, spoken.text.rstrip(), note)))
        return Output(
            text=text,
            blocks=(spoken.image,) if spoken.image else (),
            data={"retrieval_status": retrieved, "task": about},
            card=Card(title=f"Task {task.id}", detail=f"{status}{code}", body=spoken.text, body_kind="code"),
        )


def find_task(tasks: BackgroundTasks, id: str) -> BackgroundTask:  # noqa: A002
    """The task with that id."""
    if (task := tasks.get(id)) is not None:
        return task
    known = ", ".join(f"{each.id} ({each.status})" for each in tasks.all()) or "none"
    raise ToolError(f"There is no background task {id!r}. Known tasks: {known}. Use the id of one of these.")
