"""All tools that come with handrail: the one list of them. A tool costs no import until it is called."""

from collections.abc import Callable
from functools import cache
from typing import Any

from handrail.builtin.definitions import stand_in
from handrail.builtin.outfit import Outfit
from handrail.tools.pool import AnyTool, Entry, Environment
from handrail.tools.search import Searching
from handrail.tools.stand_in import Listed, fetch


def base_tools(
    catalog: Callable[[], Searching],
    outfit: Callable[[], Outfit],
) -> tuple[Entry, ...]:
    """
    Every tool there is, gated or not; the pool decides which of them a request gets.

    What tools are handed is asked for late: the catalog is made from this list, and an outfit may cost something.
    After adding or changing a tool run `make definitions`; one that is not in that file is loaded with the pool.
    """
    outfit = cache(outfit)  # the tools of a session share it
    return (
        Entry("Agent", _made("agent", "Agent", outfit), feature="agents"),
        Entry("Bash", _made("bash.tool", "Bash", outfit), simple=True),
        Entry("Edit", _made("edit", "Edit", outfit), simple=True),
        Entry("Glob", _made("glob", "Glob", outfit), when=_no_embedded_search, simple=True),
        Entry("Grep", _made("grep.tool", "Grep", outfit), when=_no_embedded_search, simple=True),
        Entry("Monitor", _made("monitor", "Monitor", outfit), when=_has_background),
        Entry("NotebookEdit", _made("notebook_edit.tool", "NotebookEdit", outfit)),
        Entry("Read", _made("read.tool", "Read", outfit), simple=True),
        Entry("Sleep", _made("sleep", "Sleep")),
        Entry("TaskOutput", _made("task_output", "TaskOutput", outfit)),
        Entry("TaskStop", _made("task_stop", "TaskStop", outfit)),
        Entry("ToolSearch", _made("tool_search", "ToolSearch", catalog)),
        Entry("Write", _made("write", "Write", outfit), simple=True),
    )


def _has_background(environment: Environment) -> bool:
    return environment.variables.get("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "") not in {"1", "true"}


def _no_embedded_search(environment: Environment) -> bool:
    """Where the shell brings a search of its own, ours would say the same thing twice."""
    return environment.variables.get("HANDRAIL_EMBEDDED_SEARCH", "") not in {"1", "true"}


def _made(module: str, name: str, *needs: Callable[[], Any]) -> Callable[[], Listed]:
    """The tool's stand-in, if it has one; it makes the tool the first time it is called, from what it needs."""
    place = f"handrail.builtin.{module}"

    @cache
    def make() -> AnyTool:
        tool: AnyTool = getattr(fetch(place), name)(*(need() for need in needs))
        return tool

    return lambda: stand_in(name, place, make) or make()
