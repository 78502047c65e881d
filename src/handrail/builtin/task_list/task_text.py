"""The task list as a text: what TaskList shows, and what a summary of the conversation must not lose."""

from handrail.builtin.services import ToolServices
from handrail.builtin.task_list.items import TaskItem, TaskItems
from handrail.builtin.task_list.store import TaskStore, todo_store
from handrail.errors import ToolError


def task_text(services: ToolServices, agent: str) -> str:
    """The tasks of the session and the steps of an agent, one line each; empty if there are none."""
    try:
        items, steps = TaskStore(services).read(), todo_store(services).read().get("agents", {}).get(agent, [])
    except ToolError:
        return ""  # the next call of its tool tells what is wrong
    lines = [task_line(items, item) for item in items.by_id.values()]
    return "\n".join([*lines, *(f"- {step['content']} ({step['status']})" for step in steps)])


def task_line(items: TaskItems, item: TaskItem) -> str:
    """One task: number, subject, and how it stands."""
    notes = [item.status]
    if item.owner:
        notes.append(f"owner {item.owner}")
    if blockers := items.open_blockers(item):
        notes.append(f"blocked by {', '.join(blockers)}")
    return f"{item.id}. {item.subject} ({', '.join(notes)})"
