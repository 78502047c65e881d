"""The task list of a session, for front ends that show it."""

from handrail.builtin.task_list.store import LIST, TaskStore, todo_store
from handrail.errors import ToolError
from handrail.records import record
from handrail.session.session import Session
from handrail.tools.access import Access


@record
class ListedTask:
    """A task of the session, or a step of its main agent. `status`: pending, in_progress or completed."""

    text: str
    status: str


def changes_tasks(access: Access) -> bool:
    """Whether a call that touches this changes the task list."""
    return access.own and LIST in access.writes


def listed_tasks(session: Session) -> tuple[ListedTask, ...]:
    """The tasks of the session, then the steps of its main agent; none if the list cannot be read."""
    services = session.services()
    try:
        tasks, steps = TaskStore(services).read(), todo_store(services).read().get("agents", {}).get("main", [])
    except ToolError:
        return ()  # the next call of its tool tells what is wrong
    listed = [ListedTask(each.subject, each.status) for each in tasks.by_id.values()]
    return (*listed, *(ListedTask(str(step["content"]), str(step["status"])) for step in steps))
