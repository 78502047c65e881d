"""The names that the program around a session brings: its own tools, and the matchers of its hooks."""

from collections.abc import Iterable, Mapping
from typing import Any

from handrail.records import record
from handrail.tools.pool import AnyTool

GUARDING = "PreToolUse"
"""The event whose hooks decide on calls."""


@record
class CallerNames:
    """The names of the caller's own tools, and what the caller's guarding hooks are matched by."""

    tools: frozenset[str] = frozenset()
    matchers: tuple[str, ...] = ()


NO_NAMES = CallerNames()


def caller_names(tools: Iterable[AnyTool], hooks: Any) -> CallerNames:
    """The names of these tools, and the matchers of hooks that are given by event or were made already."""
    given = hooks.get(GUARDING, ()) if isinstance(hooks, Mapping) else ()
    written = [getattr(each, "matcher", "") for each in given]
    if not isinstance(hooks, Mapping):
        written += hooks.matchers(GUARDING)
    return CallerNames(frozenset(tool.name for tool in tools), tuple(filter(None, written)))
