"""`handrail mcp lock`: pin the tools of servers as they are now, or check them against their pins."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

from handrail.cli.mcp.targets import find_target, settings_here
from handrail.cli.permission_flags import warn
from handrail.cli.terminal import ReportScreen
from handrail.conversation.plain import plain_json
from handrail.errors import HandrailError, McpError
from handrail.mcp.imitation import tool_problem
from handrail.mcp.lock import PinnedTool, compare, diff_lines, pin
from handrail.mcp.offers import INSTRUCTIONS
from handrail.session.servers.pins import LOCK, PinFile
from handrail.session.servers.setup import lock_file
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.tools import builtin_names


def run(chosen: argparse.Namespace) -> int:
    """0 = pinned, or as pinned; 1 = `--check` found a difference, or a server could not be asked."""
    settings = settings_here()
    names = chosen.servers or list(settings.loaded.settings.servers)
    if not names:
        warn("no MCP server may be used here, so there is nothing to pin. See: handrail mcp list")
        return 0
    rows = [lock_one(chosen, settings, name) for name in names]
    if chosen.json:
        print(plain_json(rows, indent=2))
    else:
        screen = ReportScreen(sys.stdout)
        for row in rows:
            print(screen.heading(f"{row['server']}: {row['status']}"))
            for line in row["diff"]:
                print("\n".join(screen.wrap(f"  {line}", 4)))
    return 1 if any(row["failed"] for row in rows) else 0


def lock_one(chosen: argparse.Namespace, settings: SessionSettings, name: str) -> dict[str, Any]:
    """Pin or check one server."""
    try:
        file = place(settings, name)
        pinned = file.read().get(name)
        now = asyncio.run(ask_tools(settings, name))
        changes = compare(pinned, now) if pinned is not None else ()
        if not chosen.check:
            file.write(name, now)
    except (HandrailError, McpError) as error:
        return {"server": name, "status": f"failed. {error}", "failed": True, "changes": [], "diff": []}
    count = sum(tool.name != INSTRUCTIONS for tool in now)
    if pinned is None:
        status = "not pinned yet" if chosen.check else f"{count} tools are pinned in {file.path}"
    elif not changes:
        status = f"{count} tools, all as pinned"
    else:
        status = f"{len(changes)} differences" + ("" if chosen.check else f", accepted in {file.path}")
    return {
        "server": name,
        "status": status,
        "failed": bool(chosen.check and (changes or pinned is None)),
        "changes": [{"kind": each.kind, "tool": each.name} for each in changes],
        "diff": [line for each in changes for line in diff_lines(each)],
    }


def place(settings: SessionSettings, name: str) -> PinFile:
    """The lock that a server is pinned in."""
    places = settings.places
    found = lock_file(settings.loaded.settings, places.state, places.cwd, {}, name)
    return PinFile(found or Path(places.cwd, ".handrail", LOCK))


async def ask_tools(settings: SessionSettings, name: str) -> tuple[PinnedTool, ...]:
    """The tools of a server as they are now, without those whose names imitate others."""
    builtin = builtin_names()
    async with find_target(name, settings).connect() as server:
        return tuple(pin(tool) for tool in server.described if not tool_problem(tool.name, builtin))
