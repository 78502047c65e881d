"""The catalog of a run: the built-in tools, the caller's own, and the search for what is held back."""

from collections.abc import Callable, Mapping
from functools import partial

from handrail.app.state import plain_outfit
from handrail.builtin.outfit import Outfit
from handrail.builtin.table import base_tools
from handrail.tools.catalog import Catalog
from handrail.tools.pool import AnyTool, Deferral, Denied, Environment, Ingredients, nothing_denied

DEFAULT_DEFERRAL = Deferral()


def make_catalog(
    *,
    variables: Mapping[str, str],
    custom: tuple[AnyTool, ...] = (),
    deferral: Deferral = DEFAULT_DEFERRAL,
    environment: Environment | None = None,
    denied: Denied = nothing_denied,
    outfit: Callable[[], Outfit] | None = None,
) -> Catalog:
    """The catalog of a run; nothing is loaded before its pool is asked for."""
    catalog = Catalog(
        Ingredients(
            entries=base_tools(lambda: catalog, outfit or partial(plain_outfit, variables)),
            custom=custom,
            environment=environment or Environment(variables=variables),
            denied=denied,
            deferral=deferral,
        )
    )
    return catalog


def builtin_names() -> frozenset[str]:
    """The names of all built-in tools that can be asked for."""
    return frozenset(
        entry.name for entry in base_tools(_no_catalog, partial(plain_outfit, {})) if entry.name != "ToolSearch"
    )


def _no_catalog() -> Catalog:
    raise LookupError("only the names of the tools were wanted")
