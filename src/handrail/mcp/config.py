"""
How a server is reached: an entry of `mcpServers`, checked and with its variables expanded.

    {"command": "uvx", "args": ["db-mcp"], "env": {"TOKEN": "${DB_TOKEN}"}}
    {"type": "http", "url": "${API:-https://api.example.com}/mcp", "headers": {"Authorization": "Bearer ${KEY}"}}
"""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol

from handrail.errors import McpError
from handrail.mcp.environment import basic_environment
from handrail.mcp.known_places import ServerPlace
from handrail.records import record

VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
CONNECT_TIME, CALL_TIME, IDLE_TIME = 30.0, 600.0, 300.0
REMOTE = ("http", "sse", "ws")
SHAPES = (
    ("command", str, "a text"),
    ("args", list, "a list"),
    ("env", Mapping, "an object"),
    ("cwd", str, "a text"),
    ("url", str, "a text"),
    ("headers", Mapping, "an object"),
    ("headersHelper", str, "a text"),
    ("oauth", Mapping, "an object"),
    ("sandbox", bool, "true or false"),
    ("alwaysLoad", bool, "true or false"),
)


@record
class ServerConfig:
    """One server, ready to connect: nothing in it has to be expanded or looked up. Times are in seconds."""

    name: str
    transport: str
    """`stdio`, `http` (streamable HTTP), `sse`, `ws`, or `sdk` for a server in the program that drives us."""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """All variables that a stdio server gets."""
    cwd: str = "."
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    headers_helper: str = ""
    """A command that prints a JSON object of further headers; it is run for every connection."""
    oauth: Mapping[str, Any] = field(default_factory=dict)
    """The `oauth` of the entry, as it is written."""
    connect_time: float = CONNECT_TIME
    call_time: float = CALL_TIME
    """For one call, from its start to its answer."""
    idle_time: float = IDLE_TIME
    """For one call, without an answer or progress."""
    sandbox: bool = False
    always_load: bool = False


def place_of(config: ServerConfig) -> ServerPlace:
    """Where a server is, as rules about addresses and files see it."""
    return ServerPlace(config.url, config.cwd if config.transport == "stdio" else "")


@record
class Challenge:
    """A server that wants to know who asks: its status 401 or 403, and what it says about it."""

    server: str
    url: str
    status: int
    www_authenticate: str
    """The header of that name; empty if there is none."""


class Authorizer(Protocol):
    """Knows the headers that prove to one server who asks."""

    async def headers(self) -> Mapping[str, str]:
        """The headers of the next request; empty before anything is known. It may renew what is about to expire."""
        ...

    async def respond(self, challenge: Challenge, /) -> bool:
        """
        Whether the request that was refused shall be sent once more, with the new headers.

        Raises:
            AuthorizationNeededError: a person has to sign in, and none can be asked now.
        """
        ...


def expand_variables(text: str, env: Mapping[str, str]) -> str:
    """`${NAME}` and `${NAME:-default}` from the environment; what is not set stays as it is."""
    return VARIABLE.sub(lambda found: env.get(found["name"], found["default"] or found[0]), text)


def resolve_server(name: str, entry: Mapping[str, Any], env: Mapping[str, str], cwd: str) -> ServerConfig:
    """The configuration that an entry stands for; McpError if it cannot be used."""
    check_entry(entry)
    transport = entry.get("type") or "stdio"
    if transport == "stdio" and not entry.get("command"):
        advice = 'add "type": "http" to use its url' if entry.get("url") else 'add "command", the program to start'
        raise McpError(f"it has no command. Please {advice}.")
    if transport in REMOTE and not entry.get("url"):
        raise McpError(f'it has no url. Please add "url", the address of a server of type {transport!r}.')
    if transport not in ("stdio", "sdk", *REMOTE):
        raise McpError(f"its type {transport!r} is unknown. Use stdio, http, sse or ws.")

    def texts(key: str) -> dict[str, str]:
        return {each: expand_variables(str(value), env) for each, value in (entry.get(key) or {}).items()}

    folders = {"CLAUDE_PROJECT_DIR": cwd, "HANDRAIL_PROJECT_DIR": cwd}
    return ServerConfig(
        name,
        transport,
        command=expand_variables(entry.get("command") or "", env),
        args=tuple(expand_variables(str(word), env) for word in entry.get("args") or ()),
        env={**basic_environment(env), **folders, **texts("env")} if transport == "stdio" else {},
        cwd=expand_variables(entry.get("cwd") or cwd, env),
        url=expand_variables(entry.get("url") or "", env),
        headers=texts("headers"),
        headers_helper=entry.get("headersHelper") or "",
        oauth=entry.get("oauth") or {},
        connect_time=seconds(env.get("MCP_TIMEOUT"), CONNECT_TIME),
        call_time=seconds(entry.get("timeout") or env.get("MCP_TOOL_TIMEOUT"), CALL_TIME),
        idle_time=seconds(env.get("HANDRAIL_MCP_IDLE_MS"), IDLE_TIME),
        sandbox=entry.get("sandbox") is True,
        always_load=entry.get("alwaysLoad") is True,
    )


def check_entry(entry: Mapping[str, Any]) -> None:
    """Raise McpError if a part of an entry is not of the kind it must be."""
    for key, kind, wanted in SHAPES:
        value = entry.get(key)
        if value is not None and not isinstance(value, kind):
            raise McpError(f"its {key!r} must be {wanted}, and is {str(value)[:100]!r}.")


def seconds(milliseconds: object, default: float) -> float:
    """A time limit that is written in milliseconds; the default if that is none."""
    try:
        value = float(str(milliseconds)) / 1000 if milliseconds is not None else default
    except ValueError:
        return default
    return value if 0 < value < float("inf") else default
