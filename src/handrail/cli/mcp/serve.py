"""`handrail mcp serve`: be an MCP server, for built-in tools, your own, and the servers that are configured here."""

import argparse
import asyncio
import importlib
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from handrail.builtin.table import tool_names
from handrail.cli.mcp_config_flag import read_servers
from handrail.cli.permission_flags import rule_problems, settings_flags, warn, without_effect
from handrail.cli.session_flags import warn_of_unknown_tools
from handrail.cli.signals import on_signals
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError
from handrail.gateway import McpServer, serve_http, serve_stdio
from handrail.gateway.client_rules import ClientList, read_clients
from handrail.gateway.http import PATH
from handrail.mcp.environment import GATEWAY
from handrail.serve.guard import new_token, token_digest
from handrail.serve.listen import Address, BindAddress
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.session.tools import builtin_names
from handrail.tools.pool import AnyTool
from handrail.tools.tool import Tool

ALSO_OFFERED = frozenset({"NotebookEdit", "TaskOutput", "TaskStop", "WebFetch"})
NOT_OFFERED = frozenset({"REPL"})
"""It stands for the other tools, which clients get themselves."""
VARIABLE = "HANDRAIL_MCP_TOKEN"
SHORTEST_TOKEN = 16


def run(chosen: argparse.Namespace) -> int:
    """Serve until the client goes (stdio), or a signal comes."""
    if forbidding := rule_problems(chosen)[0]:
        raise HandrailError(f"--disallowedTools: {forbidding[0]}")  # a limit would be lost
    for warning in without_effect(chosen):
        warn(warning)
    _check_flags(chosen)
    clients = read_clients(Path(chosen.clients), os.environ) if chosen.clients else None
    server = build_server(chosen, clients)
    if chosen.http:
        return asyncio.run(_serve_http(chosen, server, clients))
    return asyncio.run(_serve_stdio(server))


def _check_flags(chosen: argparse.Namespace) -> None:
    given = {
        "--host": chosen.host != "127.0.0.1",
        "--port": chosen.port,
        "--tls-cert": chosen.tls_cert,
        "--tls-key": chosen.tls_key,
        "--name": chosen.name,
        "--no-token": chosen.no_token,
        "--clients": chosen.clients,
        "--json": chosen.json,
    }
    if not chosen.http and (lost := [flag for flag, value in given.items() if value]):
        raise HandrailError(f"{lost[0]} is for --http. Without it, the one client is the program that started us.")
    if chosen.no_token and chosen.clients:
        raise HandrailError("--clients gives each client a token, so --no-token does not go with it.")
    if chosen.gateway and os.environ.get(GATEWAY):
        raise HandrailError(
            "this gateway was started by a gateway, so its configuration names itself. Write the entry of the gateway "
            "where only the client reads it, and the servers behind it with: handrail mcp add"
        )
    if not chosen.gateway and (chosen.mcp_config or chosen.strict_mcp_config):
        raise HandrailError("--mcp-config names servers to put behind this one: add --gateway.")


def build_server(chosen: argparse.Namespace, clients: ClientList | None) -> McpServer:
    """The server that the flags ask for."""
    servers: dict[str, Any] = {}
    for config in chosen.mcp_config:
        servers |= read_servers(config, Path.cwd())
    modules = [load_module(name) for name in chosen.tools]
    spec = SessionSpec(
        cwd=Path.cwd(),
        tools=ToolOptions(
            custom=tuple(tool for module in modules for tool in tools_in(module)),
            builtin=_builtin(chosen),
            mcp_servers=servers,
            strict_mcp=chosen.strict_mcp_config or not chosen.gateway,
        ),
        flags=settings_flags(chosen),
    )
    host = SessionHost(on_warning=warn)
    env = {**os.environ, GATEWAY: "1"} if chosen.gateway else os.environ
    server = McpServer.from_spec(spec, env=env, host=host, clients=clients.rules if clients else {})
    for module in modules:
        for other in vars(module).values():
            if isinstance(other, McpServer):
                server.prompts |= other.prompts
                server.resources |= other.resources
    return server


def _builtin(chosen: argparse.Namespace) -> tuple[str, ...]:
    every = builtin_names()
    if chosen.builtin is None:
        offered = every & (tool_names(simple=True) | ALSO_OFFERED) - NOT_OFFERED
        return () if chosen.gateway or chosen.tools else tuple(sorted(offered))
    warn_of_unknown_tools(chosen.builtin, every, "--builtin")
    return tuple(name for name in chosen.builtin if name in every)


def load_module(name: str) -> Any:
    """Import a module by its name, also from the working folder; HandrailError if that fails."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        with redirect_stdout(sys.stderr):  # standard output is for clients
            return importlib.import_module(name)
    except ImportError as error:
        raise HandrailError(
            f"--tools: {name!r} cannot be imported: {error}. Give a module, such as my_tools."
        ) from error


def tools_in(module: Any) -> list[AnyTool]:
    """The tools that a module defines or imports, and those of its servers; HandrailError if there is nothing."""
    found: list[AnyTool] = [value for value in vars(module).values() if isinstance(value, Tool)]
    servers = [value for value in vars(module).values() if isinstance(value, McpServer)]
    found += [tool for server in servers for tool in server.tools]
    if not found and not servers:
        raise HandrailError(
            f"--tools: {module.__name__!r} defines no tools. Put @tool above its functions (from handrail import tool)."
        )
    return list({id(tool): tool for tool in found}.values())


async def _serve_stdio(server: McpServer) -> int:
    if sys.stdin is None:
        raise HandrailError(
            "standard input is closed, and clients write to it. Let a client start this, or give --http."
        )
    stop = asyncio.Event()
    stopped = on_signals(stop.set)
    if sys.stdin.isatty():
        warn("this is an MCP server: it waits for a client on standard input. Stop it with Ctrl+C.")
    await serve_stdio(server, stop)
    return stopped() or 0


async def _serve_http(chosen: argparse.Namespace, server: McpServer, clients: ClientList | None) -> int:
    endpoint = BindAddress(chosen.host, chosen.port or 0, _path(chosen.tls_cert), _path(chosen.tls_key))
    token, tokens = _tokens(chosen, clients)
    stop = asyncio.Event()
    stopped = on_signals(stop.set)
    async with serve_http(server, endpoint, tokens, chosen.name) as address:
        _announce(chosen, address, token, clients)
        await stop.wait()
    return stopped() or 0


def _path(name: str) -> Path | None:
    return Path(name) if name else None


def _tokens(chosen: argparse.Namespace, clients: ClientList | None) -> tuple[str, Mapping[str, str] | None]:
    """A new token to show, if one was made, and the names of clients by the digests of all tokens."""
    if chosen.no_token:
        return "", None
    if clients is not None:
        return "", clients.tokens
    if given := os.environ.get(VARIABLE, ""):
        if len(given) < SHORTEST_TOKEN:
            raise HandrailError(f"{VARIABLE} is too short to be a secret. Give at least {SHORTEST_TOKEN} characters.")
        return "", {token_digest(given): ""}
    made = new_token()
    return made, {token_digest(made): ""}


def _announce(chosen: argparse.Namespace, address: Address, token: str, clients: ClientList | None) -> None:
    url = f"{address.url}{PATH}"
    if chosen.json:
        shown = {"url": url, **({"token": token} if token else {}), "clients": sorted(clients.rules) if clients else []}
        print(plain_json(shown), flush=True)
        return
    print(f"handrail serves MCP at {plain(url)}", flush=True)
    if token:
        print(f"Clients send this header: Authorization: Bearer {token}", flush=True)
        print(f"The token is new at each start; set {VARIABLE} to keep one.", flush=True)
    elif clients:
        print(f"Known clients: {', '.join(sorted(clients.rules))}", flush=True)
    elif not chosen.no_token:
        print(f"Clients send the token of {VARIABLE}: Authorization: Bearer ...", flush=True)
    else:
        print("There is no token: every program on this machine may use it.", flush=True)
