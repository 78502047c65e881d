"""The catalog of a run: the built-in tools, the caller's own, and the search for what is held back."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

from handrail.app.state import plain_outfit
from handrail.builtin.outfit import Outfit
from handrail.builtin.table import base_tools
from handrail.tools.catalog import Catalog
from handrail.tools.pool import AnyTool, Deferral, Denied, Entry, Environment, Ingredients, nothing_denied
from handrail.tools.stand_in import Listed, loaded
from handrail.tools.tool import McpInfo

DEFAULT_DEFERRAL = Deferral()
SIMPLE, YES = ("HANDRAIL_SIMPLE", "CLAUDE_CODE_SIMPLE"), ("1", "true")
"""The variable that wants the small set of tools, and how it says so."""


def make_catalog(
    *,
    variables: Mapping[str, str],
    custom: tuple[AnyTool, ...] = (),
    deferral: Deferral = DEFAULT_DEFERRAL,
    environment: Environment | None = None,
    denied: Denied = nothing_denied,
    outfit: Callable[[], Outfit] | None = None,
    planning: bool = False,
    features: frozenset[str] = frozenset(),
    mcp: tuple[AnyTool, ...] = (),
) -> Catalog:
    """
    The catalog of a run; nothing is loaded before its pool is asked for.

    `planning` leaves out what never only reads: in plan mode it would be refused.
    """
    entries = base_tools(lambda: catalog, outfit or partial(plain_outfit, variables))
    if planning:
        denied = _or_changing(denied, entries, custom)
    catalog = Catalog(
        Ingredients(
            entries=entries,
            custom=custom,
            mcp=mcp,
            environment=environment
            or Environment(features=features, variables=variables, simple=_is_simple(variables)),
            denied=denied,
            deferral=deferral,
        )
    )
    return catalog


def _is_simple(variables: Mapping[str, str]) -> bool:
    return any(variables.get(name) in YES for name in SIMPLE)


class _AnyInput:
    """Stands for an input that is not known. A flag that looks at it depends on it."""

    def __getattr__(self, name: str) -> NoReturn:
        raise LookupError(name)


def whatever_the_input(question: Callable[[Any], Any]) -> Any:
    """The tool's answer if it is the same for every input, else "depends"."""
    try:
        return question(_AnyInput())
    except LookupError:
        return "depends"


def _or_changing(denied: Denied, entries: tuple[Entry, ...], custom: tuple[AnyTool, ...]) -> Denied:
    loaders: dict[str, Callable[[], Listed]] = {entry.name: entry.load for entry in entries}
    loaders |= {tool.name: partial(_itself, tool) for tool in custom}

    def left_out(name: str, mcp: McpInfo | None) -> bool:
        if denied(name, mcp):
            return True
        tool = loaded(loaders[name]()) if name in loaders else None
        return tool is not None and not tool.requires_user_interaction and not whatever_the_input(tool.is_read_only)

    return left_out


def _itself(tool: AnyTool) -> AnyTool:
    return tool


def builtin_names() -> frozenset[str]:
    """The names of all built-in tools that can be asked for."""
    return frozenset(
        entry.name for entry in base_tools(_no_catalog, partial(plain_outfit, {})) if entry.name != "ToolSearch"
    )


def _no_catalog() -> Catalog:
    raise LookupError("only the names of the tools were wanted")
