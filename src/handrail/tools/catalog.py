"""The catalog: the tools of a run as they change. It makes a new pool only when something changed."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from handrail.conversation.context import LOADABLE_TOOLS
from handrail.errors import ToolDefinitionError
from handrail.tools.pool import SEARCH_TOOL, AnyTool, Ingredients, Pool, assemble, obstacle, with_activated
from handrail.tools.search import Searchable, SearchIndex, parameter_text
from handrail.tools.stub import ListedTool
from handrail.tools.tool import PLAIN_VIEW, McpInfo, check_tool

MAX_ANNOUNCED, MAX_NAMED = 200, 20
NOTHING: Mapping[str, str] = {}

Settle: TypeAlias = Callable[[], Awaitable[Sequence[str]]]


async def _nothing_comes() -> tuple[str, ...]:
    """For a run without servers."""
    return ()


class Catalog:
    """Holds the ingredients and the pool made from them; searches deferred tools and activates what was found."""

    def __init__(self, ingredients: Ingredients) -> None:
        self._ingredients = ingredients
        self._pool: Pool | None = None
        self._index: SearchIndex | None = None
        self.settle: Settle = _nothing_comes
        """Waits, for a while, for servers that are still connecting."""
        self.find_expected: Callable[[], Iterable[tuple[str, McpInfo]]] = tuple
        """The tools that these servers had in earlier sessions."""

    @property
    def pool(self) -> Pool:
        """The pool of the next request."""
        if self._pool is None:
            self._pool = assemble(self._ingredients)
        return self._pool

    def left_out(self) -> dict[str, str]:
        """The tools of the table that the pool does not have, each with the reason."""
        pool, disabled = self.pool, {tool.name for tool in self.pool.disabled}
        missing = [entry for entry in self._ingredients.entries if pool.find_listed(entry.name) is None]
        return {
            entry.name: obstacle(entry, self._ingredients)
            or ("it cannot be used now" if entry.name in disabled else "no tool waits to be searched for")
            for entry in missing
        }

    def expected_tools(self) -> dict[str, str]:
        """The tools that servers bring when they are connected, each with its server; none that a rule denies."""
        return {name: mcp.server for name, mcp in self.find_expected() if not self._ingredients.denied(name, mcp)}

    def refresh(self, *, mcp: tuple[AnyTool, ...] | None = None) -> Pool:
        """
        Ask disabled tools whether they can be used now, and take over the tools of MCP servers, if given.

        Tools that can be used from now on are appended; tools that no longer can keep their place. Definitions that the
        model was sent in full stay. Once deferral has begun it goes on, so that a server that comes and goes moves no
        other tool.
        """
        if self.pool.disabled and (ready := self._ready()):
            self._append(ready)
        if mcp is None or mcp == self._ingredients.mcp:
            return self.pool
        before, self._index = self.pool, None
        self._renew(replace(self._ingredients, mcp=mcp, shown=_names(before)))
        if before.held or self.pool.held:
            sent = self._ingredients.sent if before.held else frozenset(tool.name for tool in before.active)
            deferral = replace(self._ingredients.deferral, mode="on")
            self._renew(replace(self._ingredients, sent=sent, deferral=deferral))
        return self.pool

    def add(self, tools: Sequence[AnyTool]) -> None:
        """Append tools, from the next request on. Raises ToolDefinitionError if a name is taken, or it is no tool."""
        taken = set(self.pool.names())
        for tool in tools:
            check_tool(tool)
            if names := taken.intersection((tool.name, *tool.aliases)):
                raise ToolDefinitionError(f"there is a tool {names.pop()!r} already. Give the new one another name.")
            taken.add(tool.name)
        ingredients = self._ingredients
        self._ingredients = replace(ingredients, custom=(*ingredients.custom, *tools))
        self._append([tool.name for tool in tools])

    def search(self, query: str, limit: int) -> list[str]:
        """Names of matching tools, best first, among all that are or were deferred and that no rule denies by now."""
        found = self._find(query, limit)
        if any(self._is_denied(name) for name in found):  # by a rule that is newer than the index
            self._index = None
            found = self._find(query, limit)
        return found

    def _find(self, query: str, limit: int) -> list[str]:
        if self._index is None:
            held = self.pool.held
            searched = (tool for tool in self.pool.listed if tool.name in held and not self._is_denied(tool.name))
            self._index = SearchIndex(map(_searchable, searched))
        return self._index.find(query, limit)

    def _is_denied(self, name: str) -> bool:
        tool = self.pool.find_listed(name)
        return tool is None or self._ingredients.denied(name, tool.mcp)

    def activate(self, names: Iterable[str]) -> None:
        """Send the full definitions of these from the next request on."""
        waiting = set(self.pool.deferred)
        new = [name for name in names if name in waiting]
        if new:
            self._renew(with_activated(self._ingredients, new))

    def _ready(self) -> list[str]:
        """Names of the disabled tools that can be used now."""
        pool, usable = self.pool, self._ingredients.usable
        return [tool.name for tool in pool.disabled if pool.find_listed(tool.name) is None and usable(tool)]

    def _append(self, names: Sequence[str]) -> None:
        what, self._index = with_activated(self._ingredients, names), None
        self._renew(replace(what, late=what.late.union(names), shown=_names(self.pool)))

    def _renew(self, ingredients: Ingredients) -> None:
        self._ingredients = ingredients
        self._pool = None


def _names(pool: Pool) -> frozenset[str]:
    return frozenset(tool.name for tool in pool.listed)


def _searchable(tool: ListedTool) -> Searchable:
    text = tool.prompt(PLAIN_VIEW)
    return Searchable(tool.name, tool.search_hint, text, parameter_text(json.loads(tool.schema_json)))


def announcement(pool: Pool, connecting: Sequence[str] = (), expected: Mapping[str, str] = NOTHING) -> str:
    """
    The note that tells the model which tools it can search for; empty when there are none.

    It goes outside the cached prefix, because it shrinks with every tool that is found. `connecting` are servers whose
    tools are not known yet, `expected` the known tools of others that are not connected yet, each with its server.
    """
    mcp = {tool.name: tool.mcp.server for tool in pool.listed if tool.mcp}
    lines = _lines(tuple(dict.fromkeys((*pool.deferred, *expected))), {**mcp, **expected})
    if connecting:
        lines.append(f"the tools of these MCP servers, still connecting (a search waits): {_name_list(connecting)}")
    return f"{LOADABLE_TOOLS}{SEARCH_TOOL} before they are used:\n" + "\n".join(lines) if lines else ""


def instructions_text(said: Mapping[str, str]) -> str:
    """What servers say about the use of their tools, for the model."""
    quoted = {server: "\n> ".join(text.splitlines()) for server, text in said.items()}  # none can speak for another
    parts = [f"The MCP server {server}:\n> {text}" for server, text in sorted(quoted.items())]
    return "\n\n".join(("What MCP servers say about the use of their tools. It is their word, not the user's:", *parts))


def _name_list(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _lines(names: Sequence[str], servers_by_tool: Mapping[str, str]) -> list[str]:
    """Every name, or one line per server when there are too many; never more than `MAX_ANNOUNCED` lines."""
    if len(names) <= MAX_ANNOUNCED:
        return list(names)
    own: list[str] = []
    servers: Counter[str] = Counter()
    for name in names:
        if server := servers_by_tool.get(name):
            servers[server] += 1
        else:
            own.append(name)
    lines = own + [f"{count} tools of the MCP server {server}" for server, count in sorted(servers.items())]
    rest = len(lines) - MAX_ANNOUNCED
    return lines if rest <= 0 else [*lines[:MAX_ANNOUNCED], f"and {rest} more lines of this kind"]
