"""`handrail mcp test`: connect to servers and say what each offers, or why it cannot be used."""

import argparse
import asyncio
import sys
import time
from typing import Any

from handrail.cli.mcp.targets import find_target, settings_here
from handrail.cli.permission_flags import warn
from handrail.cli.terminal import ReportScreen, count_of
from handrail.conversation.plain import plain_json
from handrail.errors import HandrailError
from handrail.session.settings.session_settings import SessionSettings


def run(chosen: argparse.Namespace) -> int:
    """Exit code 1 if a server cannot be used."""
    settings = settings_here()
    names = [chosen.server] if chosen.server else list(settings.loaded.settings.servers)
    rows = asyncio.run(test_all(chosen, settings, names))
    if chosen.json:
        print(plain_json(rows, indent=2))
    elif rows:
        print("\n".join(line for row in rows for line in report(row)))
    else:
        warn("no MCP server may be used here. See: handrail mcp list")
    return 0 if all(row["ok"] for row in rows) else 1


async def test_all(chosen: argparse.Namespace, settings: SessionSettings, names: list[str]) -> list[dict[str, Any]]:
    """How each server answers, all asked at once."""
    return list(await asyncio.gather(*(test_one(chosen, settings, name) for name in names)))


async def test_one(chosen: argparse.Namespace, settings: SessionSettings, name: str) -> dict[str, Any]:
    """How one server answers."""
    start = time.monotonic()
    try:
        target = find_target(name, settings, chosen.header, chosen.transport)
        async with target.connect() as server:
            seconds = time.monotonic() - start
            _, notes = target.usable_tools(server.tools)
            info = server.welcome.info
            return {
                "server": name,
                "ok": not notes,
                "seconds": round(seconds, 3),
                "name": str(info.get("name", "")),
                "version": str(info.get("version", "")),
                "protocol": server.welcome.version,
                "transport": target.config.transport,
                "tools": len(server.tools),
                "prompts": len(server.prompts),
                "resources": len(server.resources),
                "problems": list(notes),
            }
    except HandrailError as error:
        return {"server": name, "ok": False, "problems": [str(error)]}


def report(row: dict[str, Any]) -> list[str]:
    """One server in lines for people."""
    screen = ReportScreen(sys.stdout)
    if "protocol" not in row:
        return screen.wrap(f"{row['server']}: failed. {row['problems'][0]}", 2)
    offers = ", ".join(count_of(row[f"{kind}s"], kind) for kind in ("tool", "prompt", "resource"))
    who = f"{row['name']} {row['version']}".strip()
    first = f"{row['server']}: ok. {who}, protocol {row['protocol']} over {row['transport']}, {offers}"
    lines = screen.wrap(f"{first}, in {row['seconds']:.2f} s.", 2)
    return lines + [line for note in row["problems"] for line in screen.wrap(f"  left out: {note}", 4)]
