"""TodoWrite: replace the list of steps of an agent."""

from typing import Any, Literal

from handrail.builtin.services import ToolServices
from handrail.builtin.task_list.cards import ChecklistLine, checklist
from handrail.builtin.task_list.items import MAX_ITEMS
from handrail.builtin.task_list.store import LIST, Content, todo_store
from handrail.builtin.task_list.task_create import MAX_LINE
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool


class Step(PlainInput):
    content: str = Field(min_length=1, max_length=MAX_LINE, description="What is to be done.")
    status: Literal["pending", "in_progress", "completed"] = Field(description="How far it is.")
    activeForm: str = Field(  # noqa: N815  # the name that models know
        min_length=1, max_length=MAX_LINE, description="The content while it is being done."
    )


class TodoWriteInput(PlainInput):
    todos: list[Step] = Field(max_length=MAX_ITEMS, description="The whole list; it replaces the old one.")


class TodoWrite(Tool[TodoWriteInput]):
    name = "TodoWrite"
    search_hint = "plan steps checklist progress list"
    input_model = TodoWriteInput

    def __init__(self, services: ToolServices) -> None:
        self._file = todo_store(services)

    def summary(self, args: TodoWriteInput) -> str:
        return f"TodoWrite({len(args.todos)} steps)"

    def access(self, args: TodoWriteInput, run: RunContext) -> Access:
        return Access.bookkeeping(writes=LIST)

    async def call(self, args: TodoWriteInput, ctx: ToolContext) -> Output:
        steps = [dict(vars(step)) for step in args.todos]

        def replace_steps(content: Content) -> tuple[Content, list[dict[str, Any]]]:
            agents = content.get("agents", {})
            return {"agents": {**agents, ctx.agent.id: steps}}, agents.get(ctx.agent.id, [])

        before = await self._file.change(replace_steps)
        lines = [ChecklistLine(s.status, s.activeForm if s.status == "in_progress" else s.content) for s in args.todos]
        return Output(
            text=f"The list was written: {len(lines)} steps, {sum(s.status == 'completed' for s in args.todos)} done.",
            data={"oldTodos": before, "newTodos": steps},
            card=checklist("Steps", lines),
        )
