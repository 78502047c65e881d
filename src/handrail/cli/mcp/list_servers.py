"""`handrail mcp list`: the configured servers and how each stands, or the tools of one server."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from handrail.cli.mcp.targets import find_target, settings_here
from handrail.cli.permission_flags import warn
from handrail.cli.terminal import ReportScreen
from handrail.config.mcp_files import WrittenServer
from handrail.config.server_lists import refusal_reason
from handrail.config.shown_values import show_text
from handrail.config.snapshot import Settings
from handrail.conversation.plain import plain_json
from handrail.tools.mcp_names import tool_name


def run(chosen: argparse.Namespace) -> int:
    """List servers, or tools."""
    return list_tools(chosen) if chosen.server else list_servers(chosen)


def list_servers(chosen: argparse.Namespace) -> int:
    """Every server that a file names. None is started."""
    loaded = settings_here().loaded.settings
    rows = [describe(each, loaded) for each in loaded.written_servers]
    if chosen.json:
        print(plain_json(rows, indent=2))
    elif rows:
        cells = [(row["name"], row["scope"], row["status"], row["target"]) for row in rows]
        print("\n".join(ReportScreen(sys.stdout).table(cells, indent="")))
    else:
        warn("no MCP server is configured here. Add one with: handrail mcp add NAME COMMAND|URL")
    return 0


def describe(server: WrittenServer, settings: Settings) -> dict[str, Any]:
    """One server as data."""
    entry = server.entry if isinstance(server.entry, Mapping) else {}
    args = entry.get("args")
    words = [entry.get("command"), *(args if isinstance(args, list) else ())]
    target = entry.get("url") or " ".join(str(word) for word in words if word)
    return {
        "name": server.name,
        "scope": server.scope,
        "type": entry.get("type") or "stdio",
        "target": show_text("", str(target)),
        "file": server.shown,
        "status": state_of(server, settings),
    }


def state_of(server: WrittenServer, settings: Settings) -> str:
    """Whether a server is used in runs here, and if not, why."""
    if not isinstance(server.entry, Mapping):
        return "broken: its entry is not an object"
    entry: Mapping[str, Any] = server.entry
    used = settings.servers.get(server.name)
    if used is entry:
        why = refusal_reason(settings, server.name, (entry,))
        return f"refused: {why}" if why else "used"
    if used is not None:
        other = settings.find_server(server.name)
        return f"hidden by the one of {other.shown if other else 'another file'}"
    refused = server.name in (settings.get("disabledMcpjsonServers") or ())
    return "refused by disabledMcpjsonServers" if refused else "not approved yet: handrail trust"


def list_tools(chosen: argparse.Namespace) -> int:
    """The tools of one server."""
    rows, notes = asyncio.run(ask_for_tools(chosen))
    for note in notes:
        warn(f"a tool is left out: {note}")
    if chosen.json:
        print(plain_json(rows, indent=2))
    elif rows:
        cells = [(row["name"], row["description"].strip().partition("\n")[0]) for row in rows]
        print("\n".join(ReportScreen(sys.stdout).table(cells, indent="")))
    else:
        warn("the server offers no tools")
    return 0


async def ask_for_tools(chosen: argparse.Namespace) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The tools of a server that may be used, as data, and why the others may not."""
    target = find_target(chosen.server, settings_here(), chosen.header, chosen.transport)
    async with target.connect() as server:
        tools, notes = target.usable_tools(server.tools)
    rows = [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "called": tool_name(target.name, tool.name),
            "annotations": dict(tool.annotations),
            "input_schema": tool.schema,
        }
        for tool in tools
    ]
    return rows, notes
