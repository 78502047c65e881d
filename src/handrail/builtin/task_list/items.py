"""
The task list as data: tasks and the changes of them.

A dependency is stored once, with the task that waits; what a task blocks is looked up. So both sides always agree, and
a deleted task leaves nothing behind. A task never waits for itself, not even through other tasks.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from itertools import pairwise
from typing import Any

from handrail.errors import TaskListError
from handrail.records import record

MAX_ITEMS = 1000
MAX_METADATA = 20_000
DELETED = "deleted"


@record
class TaskItem:
    """One task."""

    id: str
    subject: str
    description: str = ""
    status: str = "pending"
    """`pending`, `in_progress` or `completed`."""
    active_form: str = ""
    owner: str = ""
    blocked_by: tuple[str, ...] = ()
    """Ids of the tasks that come first."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@record
class TaskItems:
    """All tasks by id, oldest first. `last` is the newest id; ids are never reused."""

    by_id: Mapping[str, TaskItem] = field(default_factory=dict)
    last: int = 0

    def blocks(self, waited_for: str) -> tuple[str, ...]:
        """Ids of the tasks that wait for this one."""
        return tuple(item.id for item in self.by_id.values() if waited_for in item.blocked_by)

    def open_blockers(self, item: TaskItem) -> tuple[str, ...]:
        """Ids of the tasks that this one still waits for."""
        return tuple(blocker for blocker in item.blocked_by if self.by_id[blocker].status != "completed")


@record
class TaskChange:
    """The fields to change. None = unchanged; a metadata key with None is deleted."""

    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    status: str | None = None
    add_blocks: tuple[str, ...] = ()
    add_blocked_by: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


PLAIN = ("subject", "description", "active_form", "owner", "status")
NAMES = {name: name for name in (*PLAIN, "metadata")} | {"active_form": "activeForm", "blocked_by": "blockedBy"}
"""The names of the fields for programs."""


def add_task(
    items: TaskItems, subject: str, description: str, active_form: str, metadata: Mapping[str, Any]
) -> TaskItems:
    """Add a task."""
    if len(items.by_id) >= MAX_ITEMS:
        raise TaskListError(f"There are {MAX_ITEMS} tasks already. Delete some with TaskUpdate (status deleted) first.")
    last = items.last + 1
    item = TaskItem(str(last), subject, description, active_form=active_form, metadata=clean_metadata(metadata))
    return TaskItems({**items.by_id, item.id: item}, last)


def change_task(items: TaskItems, which: str, change: TaskChange) -> tuple[TaskItems, tuple[str, ...]]:
    """Change a task; returns the list and the names of the changed fields."""
    before, blocked_before = get_task(items, which), items.blocks(which)
    if change.status == DELETED:
        return remove_task(items, which), ("status",)
    values = {name: getattr(change, name) for name in PLAIN}
    after = replace(before, **{name: value for name, value in values.items() if value is not None})
    after = replace(after, metadata=clean_metadata({**before.metadata, **change.metadata}))
    items = TaskItems({**items.by_id, which: after}, items.last)
    for blocked in change.add_blocks:
        items = add_blocker(items, blocked, which)
    for blocker in change.add_blocked_by:
        items = add_blocker(items, which, blocker)
    after = items.by_id[which]
    names = [shown for name, shown in NAMES.items() if getattr(before, name) != getattr(after, name)]
    return items, (*names, *(["blocks"] if items.blocks(which) != blocked_before else []))


def check_claim(item: TaskItem, names: Collection[str], *, owner: str | None, status: str | None) -> None:
    """Refuse a sub-agent that takes or begins the task of another one. The lead may give tasks to anyone."""
    if item.owner and item.owner not in names and (owner in names or status == "in_progress"):
        raise TaskListError(
            f"Task {item.id} belongs to {item.owner!r} ({item.status}). Nothing was changed. Take a task without an "
            "owner; TaskList shows them."
        )


def add_blocker(items: TaskItems, blocked: str, blocker: str) -> TaskItems:
    """Let one task wait for another."""
    item, _ = get_task(items, blocked), get_task(items, blocker)
    if blocked == blocker:
        raise TaskListError(f"Task {blocked} cannot wait for itself. Nothing was changed. Name another task.")
    if chain := find_chain(items, blocker, blocked):
        steps = ", ".join(f"{one} waits for {other}" for one, other in pairwise(chain))
        raise TaskListError(
            f"Task {blocked} cannot wait for {blocker}: {steps} already. Nothing was changed. Remove one of these "
            "first."
        )
    if blocker in item.blocked_by:
        return items
    return TaskItems({**items.by_id, blocked: replace(item, blocked_by=(*item.blocked_by, blocker))}, items.last)


def find_chain(items: TaskItems, start: str, end: str) -> tuple[str, ...]:
    """The chain of tasks through which one waits for another; empty if it does not."""
    ways: dict[str, tuple[str, ...]] = {start: (start,)}
    ahead = [start]
    for one in ahead:  # it grows during the loop
        for blocker in items.by_id[one].blocked_by:
            if blocker not in ways:
                ways[blocker] = (*ways[one], blocker)
                ahead.append(blocker)
    return ways.get(end, ())


def remove_task(items: TaskItems, which: str) -> TaskItems:
    """Remove a task, also from the dependencies of others."""
    remaining = (item for item in items.by_id.values() if item.id != which)
    freed = (replace(item, blocked_by=tuple(each for each in item.blocked_by if each != which)) for item in remaining)
    return TaskItems({item.id: item for item in freed}, items.last)


def get_task(items: TaskItems, which: str) -> TaskItem:
    """The task with that id."""
    if (item := items.by_id.get(which)) is None:
        raise TaskListError(f"There is no task {which!r}. TaskList shows those that there are.")
    return item


def clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata without keys whose value is None."""
    found = {key: value for key, value in metadata.items() if value is not None}
    if (size := len(json.dumps(found))) > MAX_METADATA:
        raise TaskListError(f"The metadata takes {size:,} characters, {MAX_METADATA:,} are kept. Write it to a file.")
    return found
