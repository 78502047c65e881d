"""Hooks may object to a task that is created or completed."""

from handrail.builtin.services import ToolServices
from handrail.builtin.task_list.items import TaskItem
from handrail.tools.context import ToolContext


async def objection(services: ToolServices, event: str, item: TaskItem, ctx: ToolContext) -> str:
    """Why hooks do not want the task created or completed; empty if they do, or there are none."""
    if services.object_to_task is None:
        return ""
    about = {"task_id": item.id, "task_subject": item.subject, "task_description": item.description}
    who = {"teammate_name": ctx.agent.name, "team_name": ctx.agent.team}
    return await services.object_to_task(event, {**about, **{key: name for key, name in who.items() if name}}, ctx.run)
