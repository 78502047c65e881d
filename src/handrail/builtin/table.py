"""All tools that come with handrail: the one list of them. A tool costs no import until it is called."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from handrail.builtin.definitions import stand_in
from handrail.builtin.services import ToolServices
from handrail.tools.pool import AnyTool, Entry, Environment
from handrail.tools.search import Searching
from handrail.tools.stand_in import Listed, fetch

USUAL_FEATURES = frozenset({"background", "task-list"})
"""The families of tools that need nothing but what every program has; sub-agents need somebody who runs them."""


def base_tools(
    catalog: Callable[[], Searching],
    services: Callable[[], ToolServices],
) -> tuple[Entry, ...]:
    """
    Every tool there is, gated or not; the pool decides which of them a request gets.

    What tools are handed is asked for late: the catalog is made from this list, and making it may cost something.
    After adding or changing a tool run `make definitions`; one that is not in that file is loaded with the pool.
    """
    services = cache(services)  # the tools of a session share it
    return (
        Entry("Agent", _factory("agent", "AgentTool", services), feature="agents"),
        Entry("Bash", _factory("bash.tool", "Bash", services), simple=True, when=_not_by_repl),
        Entry("Edit", _factory("edit", "Edit", services), simple=True),
        Entry("Glob", _factory("glob", "Glob", services), simple=True, when=_has_search),
        Entry("Grep", _factory("grep.tool", "Grep", services), simple=True, when=_has_search),
        Entry(
            "Monitor", _factory("background.monitor", "Monitor", services), feature="background", when=_has_background
        ),
        Entry("NotebookEdit", _factory("notebook_edit.tool", "NotebookEdit", services)),
        Entry("PowerShell", _factory("powershell", "PowerShell", services), when=_has_pwsh),
        Entry("REPL", _factory("repl.tool", "REPL", services), simple=True, when=_has_repl),
        Entry("Read", _factory("read.tool", "Read", services), simple=True),
        Entry("Sleep", _factory("sleep", "Sleep")),
        Entry(
            "TaskCreate",
            _factory("task_list.task_create", "TaskCreate", services),
            feature="task-list",
            when=_has_task_list,
        ),
        Entry("TaskGet", _factory("task_list.task_get", "TaskGet", services), feature="task-list", when=_has_task_list),
        Entry(
            "TaskList", _factory("task_list.task_list", "TaskList", services), feature="task-list", when=_has_task_list
        ),
        Entry("TaskOutput", _factory("background.task_output", "TaskOutput", services), feature="background"),
        Entry("TaskStop", _factory("background.task_stop", "TaskStop", services), feature="background"),
        Entry(
            "TaskUpdate",
            _factory("task_list.task_update", "TaskUpdate", services),
            feature="task-list",
            when=_has_task_list,
        ),
        Entry(
            "TodoWrite",
            _factory("task_list.todo_write", "TodoWrite", services),
            feature="task-list",
            when=_has_todo_list,
        ),
        Entry("ToolSearch", _factory("tool_search", "ToolSearch", catalog)),
        Entry("Write", _factory("write", "Write", services), simple=True),
    )


def _has_background(environment: Environment) -> bool:
    return environment.variables.get("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "") not in {"1", "true"}


def _has_search(environment: Environment) -> bool:
    """Where the shell brings a search of its own, ours would say the same thing twice."""
    embedded = environment.variables.get("HANDRAIL_EMBEDDED_SEARCH", "") in {"1", "true"}
    return not embedded and _not_by_repl(environment)


def _has_task_list(environment: Environment) -> bool:
    """One list or the other: two would say different things."""
    return environment.variables.get("CLAUDE_CODE_ENABLE_TASKS", "") not in {"0", "false"}


def _has_todo_list(environment: Environment) -> bool:
    return not _has_task_list(environment)


def _has_repl(environment: Environment) -> bool:
    return environment.variables.get("HANDRAIL_REPL", "") in {"1", "true"}


def _not_by_repl(environment: Environment) -> bool:
    """In the small set, Python code takes the place of tools that run programs and look for files."""
    return not (environment.simple and _has_repl(environment))


def _has_pwsh(environment: Environment) -> bool:
    folders = environment.variables.get("PATH", "").split(":")
    return any(folder.startswith("/") and os.access(f"{folder}/pwsh", os.X_OK) for folder in folders)


def _factory(module: str, name: str, *needs: Callable[[], Any]) -> Callable[[], Listed]:
    """The tool's stand-in, if it has one; it makes the tool the first time it is called, from what it needs."""
    place = f"handrail.builtin.{module}"

    @cache
    def make() -> AnyTool:
        tool: AnyTool = getattr(fetch(place), name)(*(need() for need in needs))
        return tool

    return lambda: stand_in(name, place, make) or make()
