"""Shows task lists to the user as a checklist."""

from collections.abc import Iterable, Sequence

from handrail.builtin.task_list.items import TaskItem, TaskItems
from handrail.records import record
from handrail.tools.cards import Card

MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
MAX_LINES = 40


@record
class ChecklistLine:
    """One line of a checklist."""

    status: str
    text: str

    def __str__(self) -> str:
        return f"{MARKS[self.status]} {' '.join(self.text.split())}"


def checklist(title: str, lines: Sequence[ChecklistLine]) -> Card:
    """A card with all lines; of very many, only those that are not done yet."""
    open_lines = [line for line in lines if line.status != "completed"]
    done = len(lines) - len(open_lines)
    shown = [str(line) for line in (lines if len(lines) <= MAX_LINES else open_lines[:MAX_LINES])]
    if (rest := len(open_lines) - MAX_LINES) > 0:
        shown.append(f"... and {rest} more")
    detail = f"{done} of {len(lines)} done"
    return Card(title, detail, "\n".join(shown), tone="plain" if open_lines or not lines else "good")


def task_card(title: str, items: TaskItems, only: Iterable[str] | None = None) -> Card:
    """The task list after a call, or some of it."""
    shown = items.by_id if only is None else only
    return checklist(
        title, [ChecklistLine(items.by_id[each].status, _task_text(items, items.by_id[each])) for each in shown]
    )


def _task_text(items: TaskItems, item: TaskItem) -> str:
    text = item.active_form if item.status == "in_progress" and item.active_form else item.subject
    notes = [item.owner] if item.owner else []
    if blockers := items.open_blockers(item):
        notes.append(f"waits for {', '.join(blockers)}")
    return f"{item.id}. {text}" + (f" ({', '.join(notes)})" if notes else "")
