"""Finds the server that a command names, and connects to it for that one command."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from handrail.cli.permission_flags import warn
from handrail.config.flags import SettingsFlags
from handrail.config.server_lists import refusal_reason
from handrail.errors import HandrailError, McpError
from handrail.mcp.config import ServerConfig, resolve_server
from handrail.mcp.host import ClientHost
from handrail.mcp.offers import RemoteTool
from handrail.mcp.open_peer import ServerParts, open_once
from handrail.mcp.server import Server
from handrail.records import record
from handrail.session.servers.pins import ToolPins
from handrail.session.servers.setup import authorizers, entry_notes, lock_file
from handrail.session.settings.session_settings import SessionSettings, open_settings
from handrail.session.state_folder import state_folder
from handrail.session.tools import builtin_names
from handrail.tools.wording import did_you_mean

if TYPE_CHECKING:
    from handrail.mcp.oauth.sign_in import OpenBrowser

SCHEMES = {"http": "http", "https": "http", "ws": "ws", "wss": "ws"}
NO_HOST = ClientHost()


def settings_here() -> SessionSettings:
    """The settings of the working folder."""
    return open_settings(Path.cwd(), os.environ, state_folder(os.environ), SettingsFlags(), warn)


@record
class Target:
    """One server that a command means; `is_configured` if a file names it."""

    name: str
    entry: Mapping[str, Any]
    config: ServerConfig
    is_configured: bool
    settings: SessionSettings

    @asynccontextmanager
    async def connect(
        self, host: ClientHost = NO_HOST, open_browser: "OpenBrowser | None" = None
    ) -> AsyncGenerator[Server, None]:
        """The server with its lists; HandrailError if it cannot be reached."""
        env, state = self.settings.loaded.env, self.settings.places.state
        parts = ServerParts(env=env, host=host, authorizer_for=authorizers(env, state, open_browser))
        try:
            async with open_once(self.config, parts) as server:
                yield server
        except McpError as error:
            is_named = str(error).startswith("The MCP server ")
            raise HandrailError(str(error) if is_named else f"the MCP server {self.name!r}: {error}") from error

    def usable_tools(self, tools: Sequence[RemoteTool]) -> tuple[tuple[RemoteTool, ...], tuple[str, ...]]:
        """The tools that may be used, and why the others may not."""
        given: Mapping[str, Any] = {} if self.is_configured else {self.name: self.entry}
        settings = self.settings
        where = partial(lock_file, settings.loaded.settings, settings.places.state, settings.places.cwd, given)
        return ToolPins(where, builtin_names, pins_first=False).accept(self.name, tools)


def find_target(
    server: str, settings: SessionSettings, headers: Sequence[str] = (), transport: str | None = None
) -> Target:
    """The server with that name or at that address; HandrailError if there is none, or it may not be used."""
    name, entry = server, _entry(server, settings, headers, transport)
    if is_address(server):
        name = urlsplit(server).hostname or server
    env = settings.loaded.env
    try:
        config = resolve_server(server, entry, env, settings.places.cwd)  # errors name it as the person did
    except McpError as error:
        raise HandrailError(f"the MCP server {name!r}: {error}") from error
    used = {**entry, **({"url": config.url} if config.url else {"command": config.command, "args": list(config.args)})}
    if why := refusal_reason(settings.loaded.settings, name, (entry, used)):
        raise HandrailError(f"the MCP server {name!r} is not used: {why}.")
    for note in entry_notes({name: entry}, env):
        warn(note)
    return Target(name, entry, config, not is_address(server), settings)


def is_address(text: str) -> bool:
    """Whether a text is the address of a server."""
    return text.partition("://")[0].lower() in SCHEMES and "://" in text


def address_entry(url: str, headers: Sequence[str], transport: str | None) -> dict[str, Any]:
    """The entry of a server that is reached by its address."""
    given = parse_headers(headers)
    kind = transport or SCHEMES[url.partition("://")[0].lower()]
    return {"type": kind, "url": url, **({"headers": given} if given else {})}


def parse_headers(written: Sequence[str]) -> dict[str, str]:
    """Headers of the form `Name: value`; HandrailError if one is not."""
    found: dict[str, str] = {}
    for each in written:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise HandrailError(f"--header: {each!r} is not a header. Write 'Name: value'.")
        found[name.strip()] = value.strip()
    return found


def _entry(server: str, settings: SessionSettings, headers: Sequence[str], transport: str | None) -> Mapping[str, Any]:
    return address_entry(server, headers, transport) if is_address(server) else _find_server(server, settings)


def _find_server(name: str, settings: SessionSettings) -> Mapping[str, Any]:
    loaded = settings.loaded.settings
    entry = loaded.servers.get(name)
    if isinstance(entry, Mapping):
        return entry
    if written := loaded.find_server(name):
        if not isinstance(written.entry, Mapping):
            raise HandrailError(f"the entry of {name!r} in {written.shown} is not an object. Repair it.")
        if name in (loaded.get("disabledMcpjsonServers") or ()):
            raise HandrailError(f"the MCP server {name!r} is refused by disabledMcpjsonServers in the settings.")
        raise HandrailError(
            f"the MCP server {name!r} of {written.shown} is not approved yet. Look at it: handrail mcp get {name}. "
            "Then say: handrail trust"
        )
    hint = did_you_mean(name, [*loaded.servers])
    known = ", ".join(loaded.servers) or "none"
    raise HandrailError(
        f"there is no MCP server {name!r} here.{hint} Known: {known}. Add one with: handrail mcp add NAME COMMAND|URL"
    )
