"""The catalog of a run: the built-in tools, the caller's own, and the search for what is held back."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from handrail.builtin.services import ToolServices
from handrail.builtin.table import USUAL_FEATURES, base_tools, tool_names
from handrail.config.snapshot import NO_SETTINGS, Settings
from handrail.lazy import lazy
from handrail.tools.catalog import Catalog
from handrail.tools.flags import whatever_the_input
from handrail.tools.pool import AnyTool, Deferral, DenyFilter, Environment, Ingredients, deny_nothing
from handrail.tools.stub import ListedTool, load_tool

if TYPE_CHECKING:
    from handrail.session import services as session_services
else:
    session_services = lazy("handrail.session.services")

SKILL_TOOL, LSP_TOOL = "Skill", "LSP"
CONDITIONAL = frozenset((SKILL_TOOL, LSP_TOOL))
DEFAULT_DEFERRAL, ALWAYS_DEFERRED = Deferral(), Deferral(mode="on")
USUAL_WINDOW, CHARS_PER_TOKEN = 200_000, 4
SIMPLE, YES = ("HANDRAIL_SIMPLE", "CLAUDE_CODE_SIMPLE"), ("1", "true")
"""The variable that wants the small set of tools, and how it says so."""


def make_catalog(
    *,
    variables: Mapping[str, str],
    custom: tuple[AnyTool, ...] = (),
    deferral: Deferral = DEFAULT_DEFERRAL,
    denied: DenyFilter = deny_nothing,
    services: Callable[[], ToolServices] | None = None,
    planning: Callable[[], bool] = bool,
    features: frozenset[str] = USUAL_FEATURES,
    interactive: bool = False,
    can_ask: bool = False,
    mcp: tuple[AnyTool, ...] = (),
    offers: Mapping[str, Callable[[], bool]] = MappingProxyType({}),
    expects_servers: bool = False,
) -> Catalog:
    """
    The catalog of a run, loaded when its pool is needed.

    While `planning`, it leaves out what never only reads. The tools that need something to work with, such as skills,
    are there if `offers` says so.
    """
    entries = base_tools(lambda: catalog, services or (lambda: session_services.default_services(variables)))
    simple = any(variables.get(name) in YES for name in SIMPLE)
    catalog = Catalog(
        Ingredients(
            entries=entries,
            custom=custom,
            mcp=mcp,
            environment=Environment(features, variables, interactive=interactive, simple=simple, can_ask=can_ask),
            denied=denied,
            deferral=deferral,
            usable=lambda tool: _is_there(offers, tool) and not (planning() and _never_only_reads(load_tool(tool))),
            left_out=partial(_is_there, offers),
            expects_servers=expects_servers,
        )
    )
    return catalog


def _is_there(offers: Mapping[str, Callable[[], bool]], tool: ListedTool) -> bool:
    if tool.name in CONDITIONAL and not offers.get(tool.name, bool)():
        return False
    return tool.is_enabled()


def _never_only_reads(tool: AnyTool) -> bool:
    return tool.mcp is None and not tool.requires_user_interaction and not whatever_the_input(tool.is_read_only)


@cache
def only_reads(name: str) -> bool:
    """Whether a built-in tool only reads, whatever its input is; it is loaded for that."""
    load = builtin_loaders({}).get(name)
    return load is not None and whatever_the_input(load_tool(load()).is_read_only) is True


def deferral_of(
    env: Mapping[str, str],
    otherwise: Deferral = ALWAYS_DEFERRED,
    settings: Settings = NO_SETTINGS,
    window: int = USUAL_WINDOW,
) -> Deferral:
    """
    Which definitions wait until they are searched for; by default all that may.

    Policy decides before ENABLE_TOOL_SEARCH, and this before other settings. `window` is that of the model, in tokens:
    in the mode `auto` definitions wait once they take more than a share of it.
    """
    managed, written = settings.get_managed("toolSearch") or {}, settings.get("toolSearch") or {}
    wish, _, percent = env.get("ENABLE_TOOL_SEARCH", "").partition(":")
    mode = managed.get("mode") or _wished_mode(wish) or written.get("mode") or otherwise.mode
    share = managed.get("percent") or (int(percent) if percent.isdecimal() else None) or written.get("percent")
    return Deferral(
        mode=mode,
        count=otherwise.count,
        share=otherwise.share if share is None else share / 100,
        context_chars=window * CHARS_PER_TOKEN,
    )


def _wished_mode(wish: str) -> Literal["off", "auto", "on", ""]:
    match wish:
        case "false" | "0":
            return "off"
        case "auto":
            return "auto"
        case "":
            return ""
        case _:
            return "on"


def unwanted_tools(wanted: Iterable[str] | None) -> frozenset[str]:
    """The built-in tools that are left out when only these are wanted (None = all are)."""
    return frozenset() if wanted is None else builtin_names() - frozenset(wanted)


@cache
def builtin_names() -> frozenset[str]:
    """The names of all built-in tools that can be asked for."""
    return tool_names() - {"ToolSearch"}


def builtin_loaders(
    variables: Mapping[str, str], services: Callable[[], ToolServices] | None = None
) -> dict[str, Callable[[], Any]]:
    """Name -> how to make the built-in tool. Nothing is loaded before it is made."""
    entries = base_tools(_no_catalog, services or (lambda: session_services.default_services(variables)))
    return {entry.name: entry.load for entry in entries}


def _no_catalog() -> Catalog:
    raise LookupError("tools are only looked at here")
