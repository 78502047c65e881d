"""
MCP servers of a session: connected side by side, reported when they fail, never fatal.

    {"mcpServers": {"db": {"command": "uvx", "args": ["db-mcp"], "env": {"TOKEN": "${DB_TOKEN}"}}}}

The first request waits a few seconds for them. The tools of a server that needs longer come with a later request.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from handrail.config.server_lists import refusal_reason
from handrail.conversation.blocks import Text
from handrail.errors import HandrailError, McpError
from handrail.mcp.environment import basic_environment
from handrail.mcp.peer import ExchangePeer, Message, Peer
from handrail.mcp.server import Server, connect
from handrail.mcp.stdio import StdioPeer
from handrail.mcp.tools import McpTool, tools_of
from handrail.session.session_settings import SessionSettings
from handrail.tools.context import McpResource
from handrail.tools.mcp_names import server_name

VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
START_PATIENCE, CALL_PATIENCE = 30.0, 600.0
FIRST_WAIT = 5.0
"""Seconds that the first request waits for servers; `HANDRAIL_MCP_WAIT_MS` changes them."""

Carry = Callable[[str, Message], Awaitable[Message]]
"""Brings a message to a server of that name in the program that drives us, and its answer back."""
Refuses = Callable[[str, Sequence[Mapping[str, Any]]], str]
"""Why a server of that name may not be used, by its configuration as written and as used; empty if it may."""

OnLate = Callable[[Sequence[str]], None]
"""Gets what a person should know of a server that was not waited for, once it is connected or has failed."""


def first_wait(env: Mapping[str, str]) -> float:
    """How many seconds the first request waits for servers; 0 = not at all."""
    return 0.0 if env.get("HANDRAIL_MCP_WAIT_MS") == "0" else _seconds(env.get("HANDRAIL_MCP_WAIT_MS"), FIRST_WAIT)


def refused_by(settings: SessionSettings) -> Refuses:
    """Asks the lists of servers in the settings as they are at the time."""
    return lambda name, forms: refusal_reason(settings.loaded.settings, name, forms)


class Connection:
    """One configured server and how it stands."""

    def __init__(self, name: str, config: Mapping[str, Any], scope: str) -> None:
        self.name = name
        self.config = config
        self.scope = scope
        self.status = "pending"
        self.error = ""
        self.server: Server | None = None
        self.tools: tuple[McpTool, ...] = ()
        self.problems: tuple[str, ...] = ()
        self.connecting: asyncio.Task[None] | None = None

    def notes(self) -> list[str]:
        """What a person should know about it."""
        failed = [f"the MCP server {self.name!r} is not used: {self.error}"] if self.error else []
        return failed + [f"a tool of the MCP server {self.name!r} is left out: {why}" for why in self.problems]


class Servers:
    """The servers of one session; `carry` reaches those in this program, one that `refuses` names is never started."""

    def __init__(
        self,
        env: Mapping[str, str],
        cwd: Path,
        carry: Carry | None = None,
        refuses: Refuses = lambda _name, _forms: "",
    ) -> None:
        self._env = env
        self._cwd = str(cwd)
        self._carry = carry
        self._refuses = refuses
        self._connections: dict[str, Connection] = {}

    def add(self, servers: Mapping[str, Any], scope: str) -> None:
        """Configure servers; one of the same name that is there already stays."""
        for name, config in servers.items():
            if isinstance(config, Mapping):
                self._connections.setdefault(name, Connection(name, config, scope))

    def __bool__(self) -> bool:
        return bool(self._connections)

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """The tools of all servers that can be used now."""
        return tuple(tool for each in self._connections.values() if each.status == "connected" for tool in each.tools)

    def status(self) -> list[dict[str, Any]]:
        """How each server stands, in the form that programs ask for."""
        return [_status(each) for each in self._connections.values()]

    def by_status(self) -> dict[str, str]:
        """How each server stands, in a word."""
        return {each.name: each.status for each in self._connections.values()}

    def resources(self) -> dict[str, tuple[McpResource, ...]]:
        """What the connected servers offer to read."""
        return {each.name: each.server.resources for each in self._connections.values() if each.server}

    async def connect(self, wait: float | None = None, on_late: OnLate = lambda _notes: None) -> tuple[str, ...]:
        """
        Connect all that are not yet, and return what a person should know about them.

        After `wait` seconds (None = no limit) the rest goes on in the background, and `on_late` is told of each.
        """
        waiting = [each for each in self._connections.values() if each.status == "pending" or each.connecting]
        for each in waiting:
            each.connecting = each.connecting or asyncio.create_task(self._connect(each))
        tasks = {each.name: each.connecting for each in waiting if each.connecting}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=wait)
        notes: list[str] = []
        for each in waiting:
            task = tasks[each.name]
            if task.done():
                each.connecting = None
                task.result()
                notes += each.notes()
            else:
                notes.append(
                    f"the MCP server {each.name!r} has not answered after {wait or 0:g} s, so the work begins without "
                    "its tools; they are added when it answers."
                )
                task.add_done_callback(partial(self._finish_late, each, on_late))
        return tuple(notes)

    @staticmethod
    def _finish_late(connection: Connection, on_late: OnLate, task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            return
        connection.connecting = None
        if error := task.exception():
            connection.status, connection.error = "failed", repr(error)
        count = len(connection.tools)
        came = [f"the MCP server {connection.name!r} has answered: {count} tool{'s' * (count != 1)} from now on."]
        on_late((*([] if connection.error else came), *connection.notes()))

    async def look_again(self) -> tuple[str, ...]:
        """Let go of those that the settings refuse by now; what a person should know about it."""
        notes = []
        for each in self._connections.values():
            if each.status == "connected" and (why := self._refuses(each.name, self._forms(each))):
                await self._let_go(each)
                each.status, each.error = "failed", f"{why}."
                notes.append(f"the MCP server {each.name!r} is not used any more: {each.error}")
        return tuple(notes)

    async def reconnect(self, name: str) -> None:
        """End a connection and make it anew; HandrailError if there is no such server, or it cannot be reached."""
        connection = self._find(name)
        await self._let_go(connection)
        connection.status = "pending"
        await self._connect(connection)
        if connection.error:
            raise HandrailError(connection.error)

    async def toggle(self, name: str, *, enabled: bool) -> None:
        """Switch a server off or on again."""
        connection = self._find(name)
        if not enabled:
            await self._let_go(connection)
            connection.status = "disabled"
        elif connection.status == "disabled":
            await self.reconnect(name)

    async def ask(self, name: str, tool: str, given: Mapping[str, Any]) -> str:
        """The text that a tool answers, outside of any conversation; empty if it cannot be asked."""
        server = self._find(name).server
        if server is None:
            return ""
        try:
            output = await server.call(tool, given, "", lambda _news: None)
        except McpError as error:
            return str(error)
        return "".join(block.text for block in output.blocks if isinstance(block, Text))

    async def aclose(self) -> None:
        """End all connections; `connect` makes them anew."""
        await asyncio.gather(*map(self._let_go, self._connections.values()))
        for each in self._connections.values():
            each.status = "pending" if each.status == "connected" else each.status

    def _find(self, name: str) -> Connection:
        if name not in self._connections:
            raise HandrailError(
                f"There is no MCP server {name!r}. There are: {', '.join(self._connections) or 'none'}."
            )
        return self._connections[name]

    async def _connect(self, connection: Connection) -> None:
        connection.error = ""
        peer: Peer | None = None
        try:
            peer = await self._peer(connection)
            connection.server = await connect(
                connection.name,
                peer,
                time_limit=_seconds(self._env.get("MCP_TIMEOUT"), START_PATIENCE),
                call_time_limit=_seconds(
                    connection.config.get("timeout") or self._env.get("MCP_TOOL_TIMEOUT"), CALL_PATIENCE
                ),
            )
        except BaseException as error:  # no process is left behind when the wait for it is given up
            if peer is not None:
                await peer.aclose()
            if not isinstance(error, HandrailError):
                raise
            connection.status, connection.error = "failed", str(error)
            return
        tools, problems = tools_of(connection.server)
        taken = {tool.name for each in self._connections.values() if each is not connection for tool in each.tools}
        connection.tools = tuple(tool for tool in tools if tool.name not in taken)
        double = [tool.name for tool in tools if tool.name in taken]
        connection.problems = (*problems, *(f"another server has a tool of the name {name!r}." for name in double))
        connection.status = "connected"

    async def _peer(self, connection: Connection) -> Peer:
        config, name = connection.config, connection.name
        if wrong := _wrong(config):
            raise McpError(wrong)
        first = next(other for other in self._connections if server_name(other) == server_name(name))
        if first != name:  # what is allowed for the one would be allowed for the other
            raise McpError(f"rules cannot tell its name from {first!r}, which was there before. Give it another name.")
        forms = self._forms(connection)
        if why := self._refuses(name, forms):
            raise McpError(f"{why}.")
        match config.get("type", "stdio"):
            case "sdk":
                carry = self._carry
                if carry is None:
                    raise McpError("it lives in a program that drives handrail, and there is none.")
                return ExchangePeer(lambda message: carry(name, message))
            case "stdio" if isinstance(config.get("command"), str):
                used = forms[-1]
                given = {key: str(value) for key, value in (config.get("env") or {}).items()}
                env = basic_environment(self._env)
                env |= {"CLAUDE_PROJECT_DIR": self._cwd, "HANDRAIL_PROJECT_DIR": self._cwd}
                env |= {key: self._expand_variables(value) for key, value in given.items()}
                return await StdioPeer.start(name, [used["command"], *used["args"]], env, self._cwd)
            case "stdio":
                raise McpError("it has no command. Servers with a url need a type: http, sse or ws.")
            case kind:
                raise McpError(f"servers of the type {kind!r} have not come yet; stdio servers can be used.")

    def _forms(self, connection: Connection) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The configuration as it is written, and as it is used: with the values of variables."""
        config = connection.config
        used = {
            key: self._expand_variables(config[key]) for key in ("command", "url") if isinstance(config.get(key), str)
        }
        args = [self._expand_variables(str(word)) for word in config.get("args") or ()]
        return config, {**config, **used, "args": args}

    def _expand_variables(self, text: str) -> str:
        """`${NAME}` and `${NAME:-default}` from the environment; what is not set stays as it is."""
        return VARIABLE.sub(lambda found: self._env.get(found["name"], found["default"] or found[0]), text)

    async def _let_go(self, connection: Connection) -> None:
        task, connection.connecting = connection.connecting, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait((task,))
        server, connection.server = connection.server, None
        connection.tools = ()
        if server is not None:
            await server.aclose()


def read_servers(text: str, cwd: Path) -> Mapping[str, Any]:
    """The servers of a --mcp-config, a file or JSON; HandrailError if it cannot be read, or holds none."""
    inline = text.strip().startswith("{")
    try:
        value = json.loads(text if inline else (cwd / text).expanduser().read_text("utf-8-sig"))
    except OSError as error:
        raise HandrailError(f"--mcp-config: {text!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise HandrailError(f"--mcp-config: this is not JSON: {error}.") from error
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise HandrailError(
            '--mcp-config: there are no servers in it. Write {"mcpServers": {"name": {"command": ...}}}.'
        )
    return servers


def _wrong(config: Mapping[str, Any]) -> str:
    """What in the configuration of a server is not of the kind it must be; empty if all is."""
    for key, kind, due in (("args", list, "a list"), ("env", Mapping, "an object"), ("headers", Mapping, "an object")):
        if not isinstance(config.get(key) or (), (kind, tuple)):
            return f"its {key!r} must be {due}, and is {str(config[key])[:100]!r}."
    return ""


def _status(connection: Connection) -> dict[str, Any]:
    status: dict[str, Any] = {"name": connection.name, "status": connection.status, "scope": connection.scope}
    if connection.error:
        status["error"] = connection.error
    if connection.server is not None:
        status["serverInfo"] = dict(connection.server.info)
        status["tools"] = [
            {"name": tool.mcp.tool if tool.mcp else tool.name, "annotations": tool.annotations}
            for tool in connection.tools
        ]
    return status


def _seconds(milliseconds: object, default: float) -> float:
    try:
        value = float(str(milliseconds)) / 1000 if milliseconds is not None else default
    except ValueError:
        return default
    return value if 0 < value < float("inf") else default
