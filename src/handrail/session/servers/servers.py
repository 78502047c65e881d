"""
MCP servers of a session: connected side by side, reported when they fail, never fatal.

    {"mcpServers": {"db": {"command": "uvx", "args": ["db-mcp"], "env": {"TOKEN": "${DB_TOKEN}"}}}}

The first request does not wait for servers whose tools are known from earlier, and hardly for others: the model is told
the names of their tools, or which are still connecting, and a search for tools waits for them. The tools of a server
that needs longer come with a later request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.config.server_lists import refusal_reason
from handrail.conversation.blocks import Text
from handrail.errors import HandrailError, McpError
from handrail.lazy import lazy
from handrail.mcp.config import ServerConfig, resolve_server, seconds
from handrail.mcp.connection import ConnectionEvents, ServerConnection
from handrail.mcp.imitation import server_problem
from handrail.mcp.open_peer import NO_PARTS, Carry, ServerParts
from handrail.named_tuples import NamedTuple
from handrail.session.servers.configured_server import ConfiguredServer
from handrail.session.servers.offers import Denies, ServerOffers
from handrail.session.settings.session_settings import SessionSettings
from handrail.tools.mcp_names import server_name, tool_name
from handrail.tools.pool import AnyTool
from handrail.tools.tool import McpInfo

if TYPE_CHECKING:
    from handrail.mcp import resource_tools
    from handrail.mcp.tools import McpTool
else:
    resource_tools = lazy("handrail.mcp.resource_tools")

FIRST_WAIT = 0.15
"""
Seconds that the first request waits for servers that are new, if the model can search for their tools later.

Most servers that are programs of their own are there by then; one that a package runner starts needs seconds anyway.
"""
WHOLE_WAIT = 2.0
"""The same if it cannot: then a model that answers at once would never know of them."""
SEARCH_WAIT = 10.0
"""Seconds after the start until which a search for tools waits for servers that are still connecting."""
NOTICED = 1.0
"""A wait of so many seconds is explained to the person."""
ALWAYS_LOAD_WAIT = 5.0
"""Seconds that it waits for a server whose entry says `alwaysLoad`."""

Refuses = Callable[[str, Sequence[Mapping[str, Any]]], str]
"""Why a server of that name may not be used, by its configuration as written and as used; empty if it may."""

Approved = Callable[[str], Sequence[str] | None]
"""The tools of a server that were approved in an earlier session; None if it is new, or they are not pinned."""

OnLate = Callable[[Sequence[str]], None]
"""Gets what a person should know of servers that have changed since they were waited for; their tools may have too."""


async def _no_question() -> None:
    """There is no one to ask."""


class FirstWait(NamedTuple):
    """How long the first request waits for servers."""

    seconds: float
    skips_known: bool
    """Whether it does not wait for those whose tools are known from earlier."""


def first_wait(env: Mapping[str, str], setting: object, *, can_search: bool, for_all: bool) -> FirstWait:
    """How long the first request waits for servers: by the variable, else the setting; 0 = not at all."""
    wish = env.get("HANDRAIL_MCP_WAIT_MS") or setting
    usual = SEARCH_WAIT if for_all else FIRST_WAIT if can_search else WHOLE_WAIT
    wait = 0.0 if str(wish) == "0" else seconds(wish, usual)
    return FirstWait(wait, skips_known=wish is None and can_search and not for_all)


def refused_by(settings: SessionSettings) -> Refuses:
    """Asks the lists of servers in the settings as they are at the time."""
    return lambda name, forms: refusal_reason(settings.loaded.settings, name, forms)


def denied_by(settings: SessionSettings) -> Denies:
    """Asks the deny rules about servers, as they are at the time."""
    return lambda server, part: settings.denies_tool(tool_name(server, part), McpInfo(server, part))


class Servers:
    """
    The servers of one session. One that `refuses` names is never started; one that a rule `denies` shows nothing.

    `carry` reaches those in the program that drives us, `parts` is what all of them share. `approved` names the tools
    that one had in an earlier session.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        cwd: Path,
        carry: Carry | None = None,
        refuses: Refuses = lambda _name, _forms: "",
        parts: ServerParts = NO_PARTS,
        *,
        denies: Denies = lambda _name, _part: False,
        approved: Approved = lambda _name: None,
    ) -> None:
        self._env = env
        self._cwd = str(cwd)
        self._refuses = refuses
        self._parts = replace(parts, env=env, carry=carry)
        self._servers: dict[str, ConfiguredServer] = {}
        self._approved = approved
        self.offers = ServerOffers(self.connections, denies)
        self._resource_tools: Callable[[], tuple[AnyTool, ...]] | None = None
        self._on_late: OnLate = lambda _notes: None
        self._patience = 0.0
        self.confirm: Callable[[], Awaitable[None]] = _no_question
        """Asks a person about tools that are not as they were approved, once the servers are connected."""
        self.on_update: Callable[[str, str], None] = lambda _server, _uri: None
        """Gets the server and the address of a resource that was read and has changed since."""

    def add(self, servers: Mapping[str, Any], scope: str) -> None:
        """Configure servers; one of the same name that is there already stays."""
        for name, entry in servers.items():
            if isinstance(entry, Mapping) and name not in self._servers:
                each = ConfiguredServer(name, entry, scope)
                events = ConnectionEvents(partial(self._take_change, each), self._take_update)
                each.connection = ServerConnection(name, partial(self._resolve, each), self._parts, events)
                self._servers[name] = each

    def expected_tools(self) -> tuple[tuple[str, McpInfo], ...]:
        """The tools of servers that are still connecting, by the names that models see, as known from earlier."""
        return tuple(
            (tool_name(each.name, part), McpInfo(each.name, part))
            for each in self._servers.values()
            if each.is_connecting
            for part in each.known_tools or ()
        )

    def __bool__(self) -> bool:
        return bool(self._servers)

    @property
    def tools(self) -> "tuple[McpTool, ...]":
        """The tools of all servers. Those of a lost one stay, so that requests do not change."""
        found: dict[str, McpTool] = {}
        for each in self._servers.values():
            for tool in each.connection.tools:
                found.setdefault(tool.name, tool)
        return tuple(found.values())

    @property
    def offered(self) -> tuple[AnyTool, ...]:
        """The tools of all servers, and those for their resources if there are any."""
        if self._resource_tools is None and any(self.offers.resources().values()):
            self._resource_tools = resource_tools.resource_tools(self.offers)
        return (*self.tools, *(self._resource_tools() if self._resource_tools else ()))

    def status(self) -> list[dict[str, Any]]:
        """How each server stands, in the form that programs ask for."""
        return [each.status_json() for each in self._servers.values()]

    def by_status(self) -> dict[str, str]:
        """How each server stands, in a word."""
        return {each.name: each.status for each in self._servers.values()}

    def connections(self) -> tuple[ServerConnection, ...]:
        """The connections of all servers, in the order of the configuration."""
        return tuple(each.connection for each in self._servers.values())

    async def connect(
        self, wait: float | None = None, on_late: OnLate = lambda _notes: None, *, skips_known: bool = False
    ) -> tuple[str, ...]:
        """
        Connect all that are not yet, side by side, and return what a person should know about them.

        After `wait` seconds (None = no limit) the rest goes on in the background, and `on_late` is told of each, and of
        every later change. With `skips_known`, servers whose tools are known from earlier are not waited for.
        """
        self._on_late = on_late
        self._patience = asyncio.get_running_loop().time() + SEARCH_WAIT
        pending = [each for each in self._servers.values() if each.status == "pending"]
        for each in pending if skips_known else ():
            each.known_tools = self._approved(each.name)
        waiting = [each for each in pending if each.always_loads or each.known_tools is None]
        for each in waiting:
            each.is_awaited = True
        for each in pending:
            each.connection.start()
        try:
            await _settle(waiting, wait)
        finally:
            for each in waiting:
                each.is_awaited = False
        notes: list[str] = []
        for each in waiting:
            if each.connection.is_settled:
                notes += each.notes() + self._doubles(each)
            elif wait is None or wait >= NOTICED:
                each.was_missed = True
                notes.append(
                    f"the MCP server {each.name!r} has not answered after {wait or 0:g} s, so the work begins without "
                    "its tools; they are added when it answers."
                )
        return tuple(notes)

    def connecting(self) -> tuple[str, ...]:
        """Names of the servers that have not answered since they were first asked."""
        return tuple(name for name, each in self._servers.items() if each.is_connecting)

    async def settle(self) -> tuple[str, ...]:
        """Wait for servers that are still connecting, but not long after the start; those that still are then."""
        waiting = [
            asyncio.ensure_future(self._servers[name].connection.wait_until_settled()) for name in self.connecting()
        ]
        left = self._patience - asyncio.get_running_loop().time()
        if waiting and left > 0:
            await asyncio.wait(waiting, timeout=left)
        for task in waiting:
            task.cancel()
        return self.connecting()

    def _take_change(self, each: ConfiguredServer) -> None:
        """A server that was waited for, or was late, has changed: its status, or what it offers."""
        link, notes = each.connection, []
        if each.is_awaited:
            return
        if link.status != each.said:
            count = len(link.tools)
            if link.status == "connected" and each.was_missed:
                notes = [f"the MCP server {each.name!r} has answered: {count} tool{'s' * (count != 1)} from now on."]
            notes += each.notes() + self._doubles(each)
        self._on_late(tuple(notes))

    def _take_update(self, server: str, uri: str) -> None:
        self.on_update(server, uri)

    def _doubles(self, each: ConfiguredServer) -> list[str]:
        chosen = self.tools
        return [
            f"a tool of the MCP server {each.name!r} is left out: another server has a tool of the name {tool.name!r}."
            for tool in each.connection.tools
            if tool not in chosen
        ]

    async def look_again(self) -> tuple[str, ...]:
        """Let go of those that the settings refuse by now; what a person should know about it."""
        notes = []
        for each in self._servers.values():
            if each.status == "connected" and (why := self._refuses(each.name, each.forms(self._env))):
                await each.connection.aclose()
                each.connection.forget("failed", f"{why}.")
                each.said = "failed"
                notes.append(f"the MCP server {each.name!r} is not used any more: {why}.")
        return tuple(notes)

    async def reconnect(self, name: str) -> None:
        """Connect again; HandrailError if there is no such server, or it cannot be reached."""
        each = self._find(name)
        await each.connection.aclose()
        await each.connect_now()
        if each.connection.error:
            raise HandrailError(each.connection.error)

    async def toggle(self, name: str, *, enabled: bool) -> None:
        """Switch a server off or on again."""
        each = self._find(name)
        if not enabled:
            await each.connection.aclose()
            each.connection.forget("disabled")
            each.said = "disabled"
        elif each.status == "disabled":
            await self.reconnect(name)

    async def drop(self, name: str) -> None:
        """End a connection, and forget the server."""
        await self._find(name).connection.aclose()
        del self._servers[name]

    async def ask(self, name: str, tool: str, given: Mapping[str, Any]) -> str:
        """The text that a tool answers, outside of any conversation; empty if it cannot be asked."""
        link = self._find(name).connection
        if link.server is None:
            return ""
        try:
            output = await link.call(tool, given, "", lambda _news: None)
        except McpError as error:
            return str(error)
        return "".join(block.text for block in output.blocks if isinstance(block, Text))

    async def aclose(self) -> None:
        """End all connections; `connect` makes them again."""
        await asyncio.gather(*(each.connection.aclose() for each in self._servers.values()))

    def _find(self, name: str) -> ConfiguredServer:
        if name not in self._servers:
            raise HandrailError(f"There is no MCP server {name!r}. Known: {', '.join(self._servers) or 'none'}.")
        return self._servers[name]

    def _resolve(self, each: ConfiguredServer) -> ServerConfig:
        config = resolve_server(each.name, each.entry, self._env, self._cwd)
        first = next(other for other in self._servers if server_name(other) == server_name(each.name))
        if first != each.name:  # what is allowed for the one would be allowed for the other
            raise McpError(f"permission rules cannot tell its name from {first!r}. Rename one of them.")
        earlier = list(self._servers)[: list(self._servers).index(each.name)]
        if why := server_problem(each.name, earlier):
            raise McpError(f"{why}. Rename it.")
        if why := self._refuses(each.name, each.forms(self._env)):
            raise McpError(f"{why}.")
        return config


async def _settle(waiting: Sequence[ConfiguredServer], wait: float | None) -> None:
    first = {asyncio.ensure_future(each.connection.wait_until_settled()): each for each in waiting}
    if not first:
        return
    await asyncio.wait(first, timeout=wait)
    needed = [task for task, each in first.items() if not task.done() and each.always_loads]
    if needed and wait is not None:
        await asyncio.wait(needed, timeout=max(0.0, ALWAYS_LOAD_WAIT - wait))
    for task in first:
        task.cancel()
