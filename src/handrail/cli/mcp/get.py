"""`handrail mcp get`: one server, where it is written, whether it is used, and what is pinned of it."""

import argparse
import sys
from typing import Any

from handrail.cli.mcp.list_servers import state_of
from handrail.cli.mcp.targets import settings_here
from handrail.cli.terminal import ReportScreen
from handrail.config.shown_values import leaves, show_value
from handrail.conversation.plain import plain_json
from handrail.errors import HandrailError, McpError
from handrail.session.servers.pins import PinFile
from handrail.session.servers.setup import entry_notes, lock_file
from handrail.tools.wording import did_you_mean


def run(chosen: argparse.Namespace) -> int:
    """Show every entry of that name, the highest scope first."""
    settings = settings_here()
    loaded, places = settings.loaded.settings, settings.places
    found = [each for each in loaded.written_servers if each.name == chosen.name]
    if not found:
        hint = did_you_mean(chosen.name, [each.name for each in loaded.written_servers])
        raise HandrailError(f"there is no MCP server {chosen.name!r} here.{hint} See: handrail mcp list")
    rows: list[dict[str, Any]] = [
        {
            "name": each.name,
            "scope": each.scope,
            "file": each.shown,
            "status": state_of(each, loaded),
            "entry": show_value("", each.entry),
            "notes": list(entry_notes({each.name: each.entry}, settings.loaded.env)),
        }
        for each in found
    ]
    lock = lock_file(loaded, places.state, places.cwd, {}, chosen.name)
    try:
        pinned = PinFile(lock).read().get(chosen.name) if lock else None
    except McpError as error:
        raise HandrailError(str(error)) from error
    if chosen.json:
        print(plain_json({"servers": rows, "pinned": sorted(pinned or ()), "lock": str(lock or "")}, indent=2))
        return 0
    screen = ReportScreen(sys.stdout)
    for row in rows:
        print(screen.heading(f"{row['name']} ({row['scope']}, {row['file']}): {row['status']}"))
        entry = row["entry"]
        for path, value in leaves(entry) if isinstance(entry, dict) else [("entry", entry)]:
            print("\n".join(screen.wrap(f"  {path}: {value if isinstance(value, str) else plain_json(value)}", 4)))
        for note in row["notes"]:
            print("\n".join(screen.wrap(f"  {note}", 4)))
    count = len(pinned) if pinned is not None else 0
    print(f"  pinned: {count} tools in {lock}" if pinned is not None else "  pinned: nothing yet")
    return 0
