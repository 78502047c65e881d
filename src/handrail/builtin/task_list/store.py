"""
Stores the task lists of a session on disk, for all its agents and for other processes.

A writer holds a lock, reads the present file and replaces it by a new one. Readers need no lock: they see the old file
or the new one. A killed writer leaves one of the two.
"""

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from handrail.builtin.services import ToolServices
from handrail.builtin.task_list.items import NAMES, TaskItem, TaskItems
from handrail.errors import ToolError
from handrail.files.private_folder import make_private_folder

Result = TypeVar("Result")
Content: TypeAlias = dict[str, Any]

VERSION = 1
LOCK_SECONDS = 10.0
LOCK_STEP = 0.005
STORED = {"id": "id", **NAMES}
LIST = "the task list of the session"
"""The resource that calls read and write."""


class JsonStore:
    """A JSON file that several processes change in turn."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Content:
        """The content; empty if the file does not exist yet."""
        try:
            content: Content = json.loads(self.path.read_text("utf-8"))
            version = int(content["version"])
        except FileNotFoundError:
            return {}
        except (ValueError, LookupError, TypeError) as error:
            raise ToolError(f"{self.path} is damaged ({error}). Ask the user to move it away.") from error
        if version > VERSION:
            raise ToolError(f"{self.path} was written by a newer handrail. Ask the user to go on with that one.")
        return content

    async def change(self, step: Callable[[Content], tuple[Content, Result]]) -> Result:
        """Replace the content by that which `step` returns, and return its result. If it raises, nothing is changed."""
        try:
            async with self._alone():
                content, result = step(self.read())
                self._write(content)
                return result
        except OSError as error:
            raise ToolError(
                f"Nothing was changed: {self.path} cannot be written: {error.strerror}. Go on without the list, or ask "
                "the user."
            ) from error

    def _write(self, content: Content) -> None:
        draft = self.path.with_suffix(".draft")  # only the lock holder writes it; the next one overwrites it
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump({"version": VERSION, **content}, file)
        draft.replace(self.path)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        lock = make_private_folder(self.path.parent) / "lock"
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            await _acquire(fd, lock)
            yield
        finally:
            os.close(fd)


async def _acquire(fd: int, lock: Path) -> None:
    """Wait for the lock without blocking the event loop; closing the file releases it."""
    for _ in range(int(LOCK_SECONDS / LOCK_STEP)):
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(LOCK_STEP)
    raise ToolError(f"Nothing was changed: another process has held {lock} for {LOCK_SECONDS:g} seconds. Try again.")


class TaskStore:
    """The task list of one session."""

    def __init__(self, services: ToolServices) -> None:
        self._file = JsonStore(services.state / "todo" / "tasks.json")

    def read(self) -> TaskItems:
        """All tasks as they are now."""
        return from_json(self._file.read())

    async def change(self, step: Callable[[TaskItems], tuple[TaskItems, Result]]) -> Result:
        """Change the list under its lock, see JsonStore.change."""

        def on_content(content: Content) -> tuple[Content, Result]:
            items, result = step(from_json(content))
            return to_json(items), result

        return await self._file.change(on_content)


def todo_store(services: ToolServices) -> JsonStore:
    """The lists of TodoWrite: one for each agent of the session."""
    return JsonStore(services.state / "todo" / "steps.json")


def to_json(items: TaskItems) -> Content:
    tasks = [{shown: getattr(item, name) for name, shown in STORED.items()} for item in items.by_id.values()]
    return {"last": items.last, "tasks": tasks}


def from_json(content: Content) -> TaskItems:
    items = (_item_from_json(each) for each in content.get("tasks", ()))
    return TaskItems({item.id: item for item in items}, content.get("last", 0))


def _item_from_json(kept: Content) -> TaskItem:
    fields = {name: kept[shown] for name, shown in STORED.items()}
    return TaskItem(**{**fields, "blocked_by": tuple(fields["blocked_by"])})
