"""
Bytes of tool definitions per request: all sent in full, beside only names with ToolSearch.

    python -m benchmarks.definitions_bench [--mcp-config FILE] [--tools 500] [--json]

Without a configuration only synthetic tools are measured. With one, its servers are started and asked for their tools.
"""

import argparse
import asyncio
import os
from pathlib import Path

from benchmarks.pool_bench import catalog, many_tools

from handrail.cli.mcp_config_flag import read_servers
from handrail.conversation.plain import plain_json
from handrail.mcp.open_peer import NO_PARTS
from handrail.session.servers.servers import Servers
from handrail.tools.catalog import announcement
from handrail.tools.pool import AnyTool, Deferral, Pool, definition_json
from handrail.tools.tool import PLAIN_VIEW


def sizes(tools: tuple[AnyTool, ...]) -> dict[str, float]:
    """The bytes of a request's definitions in both ways, and after one tool was found."""
    own = request_bytes((), "on")
    deferred = catalog(tools, Deferral(mode="on"))
    first = measure(deferred.pool)
    found = deferred.search(tools[0].prompt(PLAIN_VIEW)[:100], 1)
    deferred.activate(found)
    everything = request_bytes(tools, "off")
    return {
        "tools": len(tools),
        "built_in_bytes": own,
        "all_sent_bytes": everything,
        "deferred_bytes": first,
        "after_one_was_found_bytes": measure(deferred.pool),
        "share": (first - own) / max(everything - own, 1),
    }


def request_bytes(tools: tuple[AnyTool, ...], mode: str) -> int:
    return measure(catalog(tools, Deferral(mode="on" if mode == "on" else "off")).pool)


def measure(pool: Pool) -> int:
    """The definitions that a request carries, and the note that names the others."""
    return sum(len(definition_json(tool, PLAIN_VIEW)) for tool in pool.active) + len(announcement(pool).encode())


async def tools_of_servers(config: str) -> tuple[AnyTool, ...]:
    servers = Servers(os.environ, Path.cwd(), parts=NO_PARTS)
    servers.add(read_servers(config, Path.cwd()), "dynamic")
    try:
        for note in await servers.connect():
            print(note)
        return servers.tools
    finally:
        await servers.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--mcp-config", metavar="FILE|JSON", default="", help="servers to ask")
    parser.add_argument("--tools", type=int, default=500, help="how many synthetic tools")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    figures = {f"{chosen.tools} synthetic tools": sizes(many_tools(chosen.tools))}
    if chosen.mcp_config:
        figures["public servers"] = sizes(asyncio.run(tools_of_servers(chosen.mcp_config)))
    if chosen.json:
        print(plain_json(figures))
        return
    for title, row in figures.items():
        print(title)
        print("\n".join(f"  {name.replace('_', ' '):30} {value:>12,.2f}" for name, value in row.items()))


if __name__ == "__main__":
    main()
