"""All tools that come with handrail: the one list of them. A tool costs no import until a pool needs it."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from handrail.builtin.outfit import Outfit
from handrail.tools.pool import AnyTool, Entry, Environment
from handrail.tools.search import Searching


def base_tools(
    catalog: Callable[[], Searching],
    outfit: Callable[[], Outfit],
) -> tuple[Entry, ...]:
    """
    Every tool there is, gated or not; the pool decides which of them a request gets.

    What tools are handed is asked for late: the catalog is made from this list, and an outfit may cost something.
    """
    return (
        Entry("Edit", _made("edit", "Edit", outfit), simple=True),
        Entry("Glob", _made("glob", "Glob", outfit), when=_no_embedded_search, simple=True),
        Entry("Grep", _made("grep", "Grep", outfit), when=_no_embedded_search, simple=True),
        Entry("NotebookEdit", _made("notebook_edit", "NotebookEdit", outfit)),
        Entry("Read", _made("read", "Read", outfit), simple=True),
        Entry("Sleep", _made("sleep", "Sleep")),
        Entry("ToolSearch", _made("tool_search", "ToolSearch", catalog)),
        Entry("Write", _made("write", "Write", outfit), simple=True),
    )


def _no_embedded_search(environment: Environment) -> bool:
    """Where the shell brings a search of its own, ours would say the same thing twice."""
    return environment.variables.get("HANDRAIL_EMBEDDED_SEARCH", "") not in {"1", "true"}


def _made(module: str, name: str, *needs: Callable[[], Any]) -> Callable[[], AnyTool]:
    """Makes the tool the first time it is wanted, from what it needs."""

    @cache
    def make() -> AnyTool:
        tool: AnyTool = getattr(import_module(f"handrail.builtin.{module}"), name)(*(need() for need in needs))
        return tool

    return make
