"""
MCP servers of a session: connected side by side, reported when they fail, never fatal.

    {"mcpServers": {"db": {"command": "uvx", "args": ["db-mcp"], "env": {"TOKEN": "${DB_TOKEN}"}}}}

The first request hardly waits for them: the model is told which are still connecting, and a search for tools waits for
those. The tools of a server that needs longer come with a later request.
"""

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from handrail.config.server_lists import refusal_reason
from handrail.conversation.blocks import ResultBlock, Text
from handrail.errors import HandrailError, McpError
from handrail.mcp.config import ServerConfig, expand_variables, resolve_server, seconds
from handrail.mcp.connection import ConnectionEvents, ServerConnection
from handrail.mcp.imitation import server_problem
from handrail.mcp.messages import Message
from handrail.mcp.offers import RemotePrompt
from handrail.mcp.open_peer import NO_PARTS, ServerParts
from handrail.mcp.resource_tools import resource_tools
from handrail.mcp.tools import McpTool, tool_name
from handrail.session.session_settings import SessionSettings
from handrail.tools.context import McpResource
from handrail.tools.mcp_names import server_name
from handrail.tools.pool import AnyTool
from handrail.tools.tool import McpInfo

SERVERS_FORM = '{"mcpServers": {"name": {"command": "program"}}}'
FIRST_WAIT = 0.15
"""
Seconds that the first request waits for servers, if the model can search for their tools later.

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

KNOWN_SCOPES = ("local", "project", "user", "policy")
"""The scopes of servers that `handrail mcp` finds by name, because a file names them."""

Carry = Callable[[str, Message], Awaitable[Message]]
"""Brings a message to a server of that name in the program that drives us, and its answer back."""
Refuses = Callable[[str, Sequence[Mapping[str, Any]]], str]
"""Why a server of that name may not be used, by its configuration as written and as used; empty if it may."""
Denies = Callable[[str, str], bool]
"""Whether a rule takes away what a server has under a name; without a name, the server as a whole."""

OnLate = Callable[[Sequence[str]], None]
"""Gets what a person should know of servers that have changed since they were waited for; their tools may have too."""


async def _no_question() -> None:
    """There is no one to ask."""


def first_wait(env: Mapping[str, str], setting: object, *, can_search: bool) -> float:
    """How many seconds the first request waits for servers: by the variable, else the setting; 0 = not at all."""
    wish = env.get("HANDRAIL_MCP_WAIT_MS") or setting
    usual = FIRST_WAIT if can_search else WHOLE_WAIT
    return 0.0 if str(wish) == "0" else seconds(wish, usual)


def refused_by(settings: SessionSettings) -> Refuses:
    """Asks the lists of servers in the settings as they are at the time."""
    return lambda name, forms: refusal_reason(settings.loaded.settings, name, forms)


def denied_by(settings: SessionSettings) -> Denies:
    """Asks the deny rules about servers, as they are at the time."""
    return lambda server, part: settings.denies_tool(tool_name(server, part), McpInfo(server, part))


class ConfiguredServer:
    """One server of the configuration: where it is written, and its connection."""

    def __init__(self, name: str, entry: Mapping[str, Any], scope: str) -> None:
        self.name = name
        self.entry = entry
        self.scope = scope
        self.connection: ServerConnection
        self.said = "pending"
        """The status that a person knows of."""
        self.is_awaited = False
        self.was_missed = False
        """Whether a person was told that the work begins without it."""

    @property
    def status(self) -> str:
        """How it stands, in a word."""
        return self.connection.status

    def notes(self) -> list[str]:
        """What a person should know about it."""
        link = self.connection
        self.said = link.status
        named = f"The MCP server {self.name!r} "
        error = f"it {link.error.removeprefix(named)}" if link.error.startswith(named) else link.error
        failed = [f"the MCP server {self.name!r} is not used: {error}{self._advice()}"] if error else []
        return failed + [f"a tool of the MCP server {self.name!r} is left out: {why}" for why in link.problems]

    def _advice(self) -> str:
        """How to look into a program or an address that does not work; empty if the entry itself is wrong."""
        if self.status != "failed" or not self.connection.was_tried or self.entry.get("type") == "sdk":
            return ""
        if self.scope in KNOWN_SCOPES:
            return f" Look into it with: handrail mcp test {shlex.quote(self.name)}"
        return "" if self.entry.get("url") else " Run its command by itself to see why."


class Servers:
    """
    The servers of one session. One that `refuses` names is never started; one that a rule `denies` shows nothing.

    `carry` reaches those in the program that drives us, `parts` is what all of them share.
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
    ) -> None:
        self._env = env
        self._cwd = str(cwd)
        self._refuses = refuses
        self._denies = denies
        self._parts = replace(parts, env=env, carry=carry)
        self._servers: dict[str, ConfiguredServer] = {}
        self._resource_tools = resource_tools(self)
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

    def __bool__(self) -> bool:
        return bool(self._servers)

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """The tools of all servers. Those of a lost one stay, so that requests do not change."""
        found: dict[str, McpTool] = {}
        for each in self._servers.values():
            for tool in each.connection.tools:
                found.setdefault(tool.name, tool)
        return tuple(found.values())

    @property
    def offered(self) -> tuple[AnyTool, ...]:
        """The tools of all servers, and those for their resources if there are any."""
        return (*self.tools, *self._resource_tools())

    async def read(self, server: str, uri: str) -> tuple[ResultBlock, ...]:
        """The contents of a resource; McpError if it cannot be had."""
        if server not in self._servers or self._denies(server, ""):
            known = [name for name in self._servers if not self._denies(name, "")]
            raise McpError(f"There is no MCP server {server!r}. There are: {', '.join(known) or 'none'}.")
        return await self._servers[server].connection.read(uri)

    def status(self) -> list[dict[str, Any]]:
        """How each server stands, in the form that programs ask for."""
        return [_status(each) for each in self._servers.values()]

    def by_status(self) -> dict[str, str]:
        """How each server stands, in a word."""
        return {each.name: each.status for each in self._servers.values()}

    def resources(self) -> dict[str, tuple[McpResource, ...]]:
        """What the connected servers offer to read."""
        links = [each.connection for each in self._servers.values()]
        return {link.name: link.server.resources for link in links if link.server and not self._denies(link.name, "")}

    def prompts(self) -> Iterator[tuple[ServerConnection, RemotePrompt]]:
        """What the connected servers offer to say, without what a rule denies."""
        for link in self.connections():
            for prompt in link.server.prompts if link.server else ():
                if not self._denies(link.name, prompt.name):
                    yield link, prompt

    def connections(self) -> tuple[ServerConnection, ...]:
        """The connections of all servers, in the order of the configuration."""
        return tuple(each.connection for each in self._servers.values())

    def find(self, name: str) -> ServerConnection:
        """The connection of a server; HandrailError if there is no such server."""
        return self._find(name).connection

    async def connect(self, wait: float | None = None, on_late: OnLate = lambda _notes: None) -> tuple[str, ...]:
        """
        Connect all that are not yet, side by side, and return what a person should know about them.

        After `wait` seconds (None = no limit) the rest goes on in the background, and `on_late` is told of each, and of
        every later change.
        """
        self._on_late = on_late
        self._patience = asyncio.get_running_loop().time() + SEARCH_WAIT
        waiting = [each for each in self._servers.values() if each.status == "pending"]
        for each in waiting:
            each.is_awaited = True
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
        return tuple(name for name, each in self._servers.items() if _is_connecting(each))

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
            if each.status == "connected" and (why := self._refuses(each.name, self._forms(each))):
                await each.connection.aclose()
                each.connection.forget("failed", f"{why}.")
                each.said = "failed"
                notes.append(f"the MCP server {each.name!r} is not used any more: {why}.")
        return tuple(notes)

    async def reconnect(self, name: str) -> None:
        """End a connection and make it anew; HandrailError if there is no such server, or it cannot be reached."""
        each = self._find(name)
        await each.connection.aclose()
        await _settle_now(each)
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
        """End all connections; `connect` makes them anew."""
        await asyncio.gather(*(each.connection.aclose() for each in self._servers.values()))

    def _find(self, name: str) -> ConfiguredServer:
        if name not in self._servers:
            raise HandrailError(f"There is no MCP server {name!r}. There are: {', '.join(self._servers) or 'none'}.")
        return self._servers[name]

    def _resolve(self, each: ConfiguredServer) -> ServerConfig:
        config = resolve_server(each.name, each.entry, self._env, self._cwd)
        first = next(other for other in self._servers if server_name(other) == server_name(each.name))
        if first != each.name:  # what is allowed for the one would be allowed for the other
            raise McpError(f"permission rules cannot tell its name from {first!r}. Rename one of them.")
        earlier = list(self._servers)[: list(self._servers).index(each.name)]
        if why := server_problem(each.name, earlier):
            raise McpError(f"{why}. Rename it.")
        if why := self._refuses(each.name, self._forms(each)):
            raise McpError(f"{why}.")
        return config

    def _forms(self, each: ConfiguredServer) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The entry as it is written, and as it is used: with the values of variables."""
        entry, env = each.entry, self._env
        texts = {key: entry[key] for key in ("command", "url") if isinstance(entry.get(key), str)}
        used = {key: expand_variables(text, env) for key, text in texts.items()}
        listed = entry.get("args")
        args = [expand_variables(str(word), env) for word in (listed if isinstance(listed, list) else ())]
        return entry, {**entry, **used, "args": args}


def read_servers(text: str, cwd: Path) -> Mapping[str, Any]:
    """The servers of a --mcp-config, a file or JSON; HandrailError if it cannot be read, or holds none."""
    inline = text.strip().startswith("{")
    where = "the text" if inline else repr(text)
    try:
        value = json.loads(text if inline else (cwd / Path(text).expanduser()).read_text("utf-8-sig"))
    except OSError as error:
        raise HandrailError(
            f"--mcp-config: {text!r} cannot be read: {error.strerror}. Give a JSON file, or JSON: {SERVERS_FORM}."
        ) from error
    except ValueError as error:
        raise HandrailError(f"--mcp-config: {where} is not JSON: {error}. Write {SERVERS_FORM}.") from error
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise HandrailError(f"--mcp-config: {where} names no servers. Write {SERVERS_FORM}.")
    return servers


def _is_connecting(each: ConfiguredServer) -> bool:
    return each.status == "pending" and not each.connection.is_settled


def _status(each: ConfiguredServer) -> dict[str, Any]:
    link = each.connection
    status: dict[str, Any] = {"name": each.name, "status": link.status, "scope": each.scope}
    if link.error:
        status["error"] = link.error
    if link.server is not None:
        status["serverInfo"] = dict(link.server.welcome.info)
        status["tools"] = [
            {"name": tool.mcp.tool if tool.mcp else tool.name, "annotations": tool.annotations} for tool in link.tools
        ]
    return status


async def _settle(waiting: Sequence[ConfiguredServer], wait: float | None) -> None:
    first = {asyncio.ensure_future(each.connection.wait_until_settled()): each for each in waiting}
    if not first:
        return
    await asyncio.wait(first, timeout=wait)
    needed = [task for task, each in first.items() if not task.done() and each.entry.get("alwaysLoad") is True]
    if needed and wait is not None:
        await asyncio.wait(needed, timeout=max(0.0, ALWAYS_LOAD_WAIT - wait))
    for task in first:
        task.cancel()


async def _settle_now(each: ConfiguredServer) -> None:
    each.is_awaited = True
    try:
        each.connection.start()
        await each.connection.wait_until_settled()
    finally:
        each.is_awaited = False
        each.said = each.status
