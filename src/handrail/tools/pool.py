"""
The pool: the tools of a request, in an order that keeps the prompt cache warm.

    own tools A-Z | MCP tools A-Z | activated deferred tools, in the order of their activation

Assembling is a pure function of what is handed in. A pool never changes; activation and refreshing make a new one.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial
from json import JSONEncoder
from operator import attrgetter, methodcaller
from typing import Any, Literal

from handrail.errors import ToolDefinitionError
from handrail.records import record
from handrail.tools.context import RunContext
from handrail.tools.stub import ListedTool, ToolStub, load_tool
from handrail.tools.tool import PLAIN_VIEW, McpInfo, PromptView, Tool

AnyTool = Tool[Any]

SEARCH_TOOL = "ToolSearch"
"""The tool that loads deferred tools. Without it nothing is deferred, and without deferral it is left out."""


@record
class Environment:
    """What decides which tools exist: features that are on, environment variables, and the kind of run."""

    features: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    interactive: bool = False
    simple: bool = False
    can_ask: bool = False
    """Whether there is a person, or a program in their place, to put questions to."""


@record
class ToolEntry:
    """
    One tool in the list of all tools. Nothing of it is imported before `load` is called.

    `load` returns the tool, or a stub where everything that a request says about it is known.
    """

    name: str
    load: Callable[[], ListedTool]
    feature: str = ""
    when: Callable[[Environment], bool] = lambda _environment: True
    simple: bool = False
    """Part of the small set of simple mode."""
    needs: str = ""
    """What `when` looks for, in words."""


@record
class Deferral:
    """
    When definitions are deferred until the model searches for them.

    Those of MCP servers, the caller's own tools and rarely used built-in ones can wait, unless they are `always_load`.
    `auto` defers once more than `count` tools could wait, or once their definitions take more than `share` of a
    context of `context_chars`; `on` always defers, `off` never.
    """

    mode: Literal["off", "auto", "on"] = "auto"
    count: int = 40
    share: float = 0.1
    context_chars: int = 800_000


NO_DEFERRAL = Deferral(mode="off")


class Pool(Sequence[AnyTool]):
    """
    An immutable, ordered list of tools; `active` is what a request carries in full.

    Indexing, iterating or finding a tool loads it; `listed` and `active` load none.
    """

    __slots__ = (
        "_by_name",
        "_left_out",
        "_own",
        "activated",
        "active",
        "deferred",
        "disabled",
        "held",
        "late",
        "listed",
        "own_count",
    )

    def __init__(
        self,
        own: Sequence[ListedTool],
        mcp: Sequence[ListedTool],
        *,
        held: frozenset[str] = frozenset(),
        appended: tuple[str, ...] = (),
        late: frozenset[str] = frozenset(),
        disabled: tuple[ListedTool, ...] = (),
        left_out: tuple[ListedTool, ...] = (),
    ) -> None:
        self.listed: tuple[ListedTool, ...] = (*own, *mcp)
        self.held = held
        """Names of the tools that are, or were, deferred."""
        self._own = frozenset(tool.name for tool in own)
        self._by_name: dict[str, ListedTool] = {alias: tool for tool in reversed(self.listed) for alias in tool.aliases}
        self._by_name |= {tool.name: tool for tool in self.listed}
        appended = tuple(name for name in appended if name in self._by_name)
        self.activated = tuple(name for name in appended if name not in late)
        """Names of deferred tools that were found, in the order they were found."""
        self.late = tuple(name for name in appended if name in late)
        """Names of tools that were added during the conversation: they go to the end, so that nothing moves."""
        self.disabled = disabled
        """Tools that could not be used when the pool was made."""
        self._left_out = {name: tool for tool in left_out for name in (tool.name, *tool.aliases)}
        apart = held | late if late else held
        ahead = [tool for tool in own if tool.name not in apart]
        self.own_count = len(ahead)
        """How many of `active` are own tools: the cache breakpoint stands after them."""
        behind = [tool for tool in mcp if tool.name not in apart] if apart else mcp
        self.active: tuple[ListedTool, ...] = (
            *ahead,
            *behind,
            *(self._by_name[name] for name in appended if name in apart),
        )
        waiting = held.difference(self.activated)
        self.deferred: tuple[str, ...] = (
            tuple(tool.name for tool in self.listed if tool.name in waiting) if waiting else ()
        )
        """Names of tools whose definitions are deferred; they are announced outside the cached prefix."""

    def __getitem__(self, index: Any) -> Any:
        found = self.listed[index]
        return tuple(map(load_tool, found)) if isinstance(found, tuple) else load_tool(found)

    def __len__(self) -> int:
        return len(self.listed)

    def find(self, name: str) -> AnyTool | None:
        """
        The tool with this name or alias. Deferred tools are found too.

        So are those that requests leave out in this mode: a call of one is refused with the reason.
        """
        found = self._by_name.get(name) or self._left_out.get(name)
        return found.load() if isinstance(found, ToolStub) else found

    def find_listed(self, name: str) -> ListedTool | None:
        """The same, without loading the tool."""
        return self._by_name.get(name)

    def modules(self) -> tuple[str, ...]:
        """Modules that are imported when tools are called. Importing them ahead makes the first call faster."""
        return tuple(dict.fromkeys(tool.module for tool in self.listed if isinstance(tool, ToolStub)))

    def names(self) -> tuple[str, ...]:
        """All names and aliases a call may use."""
        return tuple(self._by_name)

    def view(self, run: RunContext) -> PromptView:
        """What the texts of these tools may depend on. MCP tools come and go, so they are not included."""
        return PromptView(run.options.interactive, self._own, run.options.agents(), partial(run.policy, run))


_quoted = JSONEncoder(ensure_ascii=False).encode


def definition_json(tool: ListedTool, view: PromptView) -> bytes:
    """The tool as the model sees it: name, description and schema, always the same bytes for the same tool."""
    return b"%b%b}" % (_definition_head(tool.name, tool.prompt(view)), tool.schema_json)


@lru_cache(maxsize=256)
def _definition_head(name: str, description: str) -> bytes:
    head = f'{{"name":{_quoted(name)},"description":{_quoted(description)},"input_schema":'
    return head.encode("utf-8", "replace")


BY_NAME: Callable[[ListedTool], str] = attrgetter("name")

DenyFilter = Callable[[str, McpInfo | None], bool]


def deny_nothing(_name: str, _mcp: McpInfo | None) -> bool:
    """The deny filter when there are no rules."""
    return False


@record
class Ingredients:
    """Everything that a pool is made from."""

    entries: tuple[ToolEntry, ...] = ()
    custom: tuple[AnyTool, ...] = ()
    mcp: tuple[AnyTool, ...] = ()
    environment: Environment = Environment()
    denied: DenyFilter = deny_nothing
    deferral: Deferral = NO_DEFERRAL
    appended: tuple[str, ...] = ()
    """Names of tools that were activated or added late, in that order."""
    late: frozenset[str] = frozenset()
    """Those of them that were added during the conversation."""
    usable: Callable[[ListedTool], bool] = methodcaller("is_enabled")
    left_out: Callable[[ListedTool], bool] = lambda _tool: False
    """Whether a tool that is not usable is there all the same, and only not offered in this mode."""
    shown: frozenset[str] = frozenset()
    """Names of tools that were in the pool before: they keep their places even if they can no longer be used."""
    expects_servers: bool = False
    """Whether tools of MCP servers may come later: then the model can search for them from the start."""
    sent: frozenset[str] = frozenset()
    """Names of tools that the model was sent in full before deferral began: they keep their places."""


def assemble(what: Ingredients) -> Pool:
    """The only way to make a pool: features, conditions, simple mode, deny rules, enabled, unique, sorted, deferred."""
    listed = [_load(entry) for entry in what.entries if not obstacle(entry, what)]
    disabled: list[ListedTool] = []
    own = _choose((*listed, *what.custom), what, frozenset(), disabled)
    mcp = _choose(what.mcp, what, {name for tool in own for name in (tool.name, *tool.aliases)}, disabled)
    callers = frozenset(tool.name for tool in what.custom).difference(tool.name for tool in listed)
    held = _held_back(own, mcp, callers, what)
    expected = what.expects_servers or SEARCH_TOOL in what.shown or any(_can_wait(tool, callers) for tool in mcp)
    if what.deferral.mode != "off" and not held and not expected:
        own = [tool for tool in own if tool.name != SEARCH_TOOL]  # there is nothing to search for
    own, mcp = sorted(own, key=BY_NAME), sorted(mcp, key=BY_NAME)
    left_out = tuple(tool for tool in disabled if what.left_out(tool))
    return Pool(
        own, mcp, held=held, appended=what.appended, late=what.late, disabled=tuple(disabled), left_out=left_out
    )


def with_activated(what: Ingredients, names: Iterable[str]) -> Ingredients:
    """The same ingredients with more tools activated, after the earlier ones."""
    return replace(what, appended=tuple(dict.fromkeys((*what.appended, *names))))


def obstacle(entry: ToolEntry, what: Ingredients) -> str:
    """Why the tool of an entry is not part of a pool, before it is asked itself; empty if it may be."""
    environment = what.environment
    if entry.feature and entry.feature not in environment.features:
        return f"the feature {entry.feature!r} is off"
    if environment.simple and not entry.simple:
        return "simple mode has few tools only"
    if entry.name == SEARCH_TOOL and what.deferral.mode == "off":
        return "all definitions are sent, so there is nothing to search for"
    if not entry.when(environment):
        return f"it needs {entry.needs}" if entry.needs else "this run has no use for it"
    return "a deny rule takes it away" if what.denied(entry.name, None) else ""


def _load(entry: ToolEntry) -> ListedTool:
    tool = entry.load()
    if tool.name != entry.name:  # the deny filter has only seen the name of the entry
        raise ToolDefinitionError(f"The entry {entry.name!r} loads a tool called {tool.name!r}. Give both one name.")
    return tool


def _choose(
    tools: Iterable[ListedTool], what: Ingredients, taken: Collection[str], disabled: list[ListedTool]
) -> list[ListedTool]:
    """
    Tools that are allowed, usable and have a free name, one for each name; unusable ones are added to `disabled`.

    The first one wins; of two MCP tools the one whose server comes first in the alphabet, whichever connected first.
    """
    kept: dict[str, ListedTool] = {}
    for tool in tools:
        if tool.name in taken or what.denied(tool.name, tool.mcp):
            continue
        if tool.name not in what.shown and not what.usable(tool):
            disabled.append(tool)
            continue
        other = kept.setdefault(tool.name, tool)
        if other is not tool and tool.mcp and other.mcp and tool.mcp < other.mcp:
            kept[tool.name] = tool
    return list(kept.values())


def _held_back(
    own: Sequence[ListedTool], mcp: Sequence[ListedTool], callers: frozenset[str], what: Ingredients
) -> frozenset[str]:
    deferral = what.deferral
    if deferral.mode == "off" or all(tool.name != SEARCH_TOOL for tool in own):
        return frozenset()
    sent = what.sent | what.late
    waiting = [tool for tool in (*own, *mcp) if tool.name not in sent and _can_wait(tool, callers)]
    names = frozenset(tool.name for tool in waiting)
    if deferral.mode == "on" or len(waiting) > deferral.count:
        return names
    size = sum(len(definition_json(tool, PLAIN_VIEW)) for tool in waiting)
    return names if size > deferral.share * deferral.context_chars else frozenset()


def _can_wait(tool: ListedTool, callers: frozenset[str]) -> bool:
    """Whether the definition may be deferred: the tool says so, or it comes from a server or is one of the caller's."""
    may = tool.should_defer or tool.mcp is not None or tool.name in callers
    return may and not tool.always_load and tool.name != SEARCH_TOOL
