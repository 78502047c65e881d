"""`handrail mcp remove`: take the entry of a server out of its file."""

import argparse

from handrail.cli.mcp.targets import settings_here
from handrail.cli.permission_flags import warn
from handrail.config.mcp_write import remove_entry
from handrail.conversation.plain import plain_json
from handrail.errors import HandrailError, McpError
from handrail.session.servers.pins import PinFile
from handrail.session.servers.setup import lock_file


def run(chosen: argparse.Namespace) -> int:
    """Remove one server, and what was pinned of it."""
    settings = settings_here()
    loaded, places = settings.loaded.settings, settings.places
    found = [each for each in loaded.written_servers if each.name == chosen.name and chosen.scope in (None, each.scope)]
    if not found:
        known = ", ".join(dict.fromkeys(each.name for each in loaded.written_servers)) or "none"
        where = f" of the scope {chosen.scope}" if chosen.scope else ""
        raise HandrailError(f"there is no MCP server {chosen.name!r}{where} here. Known: {known}.")
    if len(found) > 1:
        scopes = ", ".join(f"{each.scope} ({each.shown})" for each in found)
        raise HandrailError(f"{chosen.name!r} is written more than once: {scopes}. Say which with --scope.")
    (server,) = found
    lock = lock_file(loaded, places.state, places.cwd, {}, server.name)
    remove_entry(places, server)
    try:
        if lock is not None:
            PinFile(lock).forget(server.name)
    except McpError as error:
        warn(str(error))
    if chosen.json:
        print(plain_json({"name": server.name, "scope": server.scope, "file": str(server.file)}))
    else:
        print(f"{server.name} is removed from {server.shown} ({server.scope}).")
    return 0
