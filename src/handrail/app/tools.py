"""The list of all tools: one line each, loaded by its dotted name when it is in the pool."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from handrail.tools.catalog import Catalog
from handrail.tools.pool import AnyTool, Deferral, Denied, Entry, Environment, Ingredients, nothing_denied

TOOL_SEARCH = "tool-search"


def _entry(name: str, target: str, **conditions: Any) -> Entry:
    module, _, member = target.partition(":")

    def load() -> AnyTool:
        tool: AnyTool = getattr(import_module(module), member)()
        return tool

    return Entry(name, load, **conditions)


BUILTINS: tuple[Entry, ...] = (
    _entry("Glob", "handrail.builtin.glob:Glob", simple=True),
    _entry("Read", "handrail.builtin.read:Read", simple=True),
    _entry("Sleep", "handrail.builtin.sleep:Sleep"),
)


def make_catalog(
    *,
    variables: Mapping[str, str],
    custom: tuple[AnyTool, ...] = (),
    deferral: Deferral = Deferral(),  # noqa: B008  # frozen
    environment: Environment | None = None,
    denied: Denied = nothing_denied,
) -> Catalog:
    """The catalog of a run: the built-ins, the caller's own tools, and a way to search for what is held back."""
    surroundings = environment or Environment(variables=variables)
    if deferral.mode != "off":
        surroundings = replace(surroundings, features=surroundings.features | {TOOL_SEARCH})

    def tool_search() -> AnyTool:
        search: AnyTool = import_module("handrail.builtin.tool_search").ToolSearch(catalog)
        return search

    entries = (*BUILTINS, Entry("ToolSearch", tool_search, feature=TOOL_SEARCH))
    ingredients = Ingredients(
        entries=entries, custom=custom, environment=surroundings, denied=denied, deferral=deferral
    )
    catalog = Catalog(ingredients)
    return catalog
