"""The names that rules and hooks of a session may be about: its tools, and the matchers of the caller's hooks."""

from collections.abc import Iterable, Mapping
from typing import Any

from handrail.builtin.table import tool_names
from handrail.records import record
from handrail.tools.pool import AnyTool

GUARDING = "PreToolUse"
"""The event whose hooks decide on calls."""


@record
class CallerNames:
    """The names of the built-in tools and the caller's own, and what the caller's guarding hooks are matched by."""

    tools: frozenset[str] = tool_names()
    matchers: tuple[str, ...] = ()


NO_NAMES = CallerNames()


def caller_names(tools: Iterable[AnyTool], hooks: Any) -> CallerNames:
    """The names of these tools, and the matchers of hooks that are given by event or were made already."""
    given = hooks.get(GUARDING, ()) if isinstance(hooks, Mapping) else ()
    written = [getattr(each, "matcher", "") for each in given]
    if not isinstance(hooks, Mapping):
        written += hooks.matchers(GUARDING)
    return CallerNames(NO_NAMES.tools.union(tool.name for tool in tools), tuple(filter(None, written)))
