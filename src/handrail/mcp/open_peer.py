"""Opens the connection that a configuration describes, and greets the server."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from handrail.errors import McpError, SandboxError
from handrail.lazy import lazy
from handrail.mcp.config import Authorizer, ServerConfig, place_of
from handrail.mcp.content import RESULT_CHARS, SaveFile, no_files
from handrail.mcp.environment import basic_environment
from handrail.mcp.eras import EraMemory
from handrail.mcp.handshake import greet
from handrail.mcp.host import ClientHost
from handrail.mcp.messages import Message
from handrail.mcp.offers import RemoteTool
from handrail.mcp.peer import ExchangeWire, Peer, ServerEvents
from handrail.mcp.server import Server, TimeLimits
from handrail.processes.sandbox_contract import Sandbox
from handrail.processes.spawn import ProcessSpec
from handrail.processes.trace_context import trace_variables
from handrail.records import record

if TYPE_CHECKING:
    from handrail.http import client as http
    from handrail.mcp import endpoint, sse, stdio, streamable_http, websocket
else:
    http = lazy("handrail.http.client")
    endpoint = lazy("handrail.mcp.endpoint")
    sse = lazy("handrail.mcp.sse")
    stdio = lazy("handrail.mcp.stdio")
    streamable_http = lazy("handrail.mcp.streamable_http")
    websocket = lazy("handrail.mcp.websocket")

Carry: TypeAlias = Callable[[str, Message], Awaitable[Message]]
"""Brings a message to a server of that name in the program that drives us, and its answer back."""
Accept: TypeAlias = Callable[[str, Sequence[RemoteTool]], tuple[tuple[RemoteTool, ...], tuple[str, ...]]]
Notify: TypeAlias = Callable[[str, Mapping[str, object]], None]


@record
class ServerParts:
    """What all connections of a session share."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Where proxies, certificates and the variables of helpers come from."""
    host: ClientHost = field(default_factory=ClientHost)
    carry: Carry | None = None
    sandbox: Callable[[], Sandbox] | None = None
    authorizer_for: Callable[[ServerConfig], Authorizer | None] = lambda _config: None
    accept: Accept = lambda _server, tools: (tuple(tools), ())
    """Which tools of a server may be used, and why the others may not."""
    eras: EraMemory = field(default_factory=EraMemory)
    save: SaveFile = no_files
    result_chars: int = RESULT_CHARS
    """The most characters of a result, unless a tool names another limit; the whole of a longer one goes to disk."""


NO_PARTS = ServerParts()


async def open_server(
    config: ServerConfig, parts: ServerParts = NO_PARTS, notify: Notify = lambda _m, _p: None
) -> Server:
    """A server that was greeted, without its lists; raises McpError if it cannot be had. Close it after use."""
    # the program that drives us brings its own questions to people
    host = ClientHost() if config.transport == "sdk" else parts.host
    events = ServerEvents(lambda method, params: host.answer(config.name, method, params), notify)
    peer = Peer(config.name, events)
    try:
        await _connect(peer, config, parts)
        known = "legacy" if config.transport in ("sdk", "sse") else parts.eras.find(config)
        over_http = config.transport == "http"
        welcome = await greet(
            peer, host.capabilities(), time_limit=config.connect_time, known=known, over_http=over_http
        )
        if over_http and welcome.era == "legacy":
            await peer.open_stream()
    except BaseException:  # no process is left behind when the wait for it is given up
        await peer.aclose()
        raise
    parts.eras.remember(config, welcome.era)
    limits = TimeLimits(config.connect_time, config.call_time, config.idle_time)
    return Server(peer, welcome, limits, host, parts.save, place=place_of(config))


@asynccontextmanager
async def open_once(config: ServerConfig, parts: ServerParts = NO_PARTS) -> AsyncGenerator[Server, None]:
    """A server with its lists, for one use; raises McpError if it cannot be had."""
    server = await open_server(config, parts)
    try:
        await server.load()
        yield server
    finally:
        await server.aclose()


async def _connect(peer: Peer, config: ServerConfig, parts: ServerParts) -> None:
    match config.transport:
        case "sdk":
            carry = parts.carry
            if carry is None:
                raise McpError(
                    "it is of type sdk: a program that drives handrail has to provide it. Use another type here."
                )
            peer.attach(ExchangeWire(lambda message: carry(config.name, message), peer.receive))
        case "stdio":
            await _start(peer, config, parts)
        case kind:
            extra = await endpoint.headers_of_helper(config, basic_environment(parts.env))
            client = http.HttpClient(parts.env, proxy_loopback=False, resend=False)
            place = endpoint.ServerEndpoint(config, client, parts.authorizer_for(config), extra)
            if kind == "ws":
                await websocket.WebSocketWire.open(peer, place)
            elif kind == "sse":
                await sse.SseWire(peer, place).open()
            else:
                streamable_http.HttpWire(peer, place)


async def _start(peer: Peer, config: ServerConfig, parts: ServerParts) -> None:
    env = {**trace_variables(), **config.env}
    spec = ProcessSpec([config.command, *config.args], config.cwd, env, grace=stdio.GRACE)
    if not config.sandbox:
        await stdio.StdioWire.start(peer, spec)
        return
    if parts.sandbox is None:
        raise McpError("its entry wants a sandbox, and there is none here.")
    try:
        wrapped = parts.sandbox().wrap(list(spec.argv), config.cwd)
    except SandboxError as error:
        raise McpError(f"it cannot run in a sandbox. {error}") from error
    changed: dict[str, str | None] = {**spec.env, **wrapped.env}
    env = {name: value for name, value in changed.items() if value is not None}
    confined = ProcessSpec(
        wrapped.argv,
        config.cwd,
        env,
        grace=stdio.GRACE,
        pass_fds=wrapped.pass_fds,
        restrictions=wrapped.restrictions,
    )
    try:
        await stdio.StdioWire.start(peer, confined, wrapped.close)
    except BaseException:
        wrapped.close()
        raise
