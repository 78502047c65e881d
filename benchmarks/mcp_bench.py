"""
What connections to MCP servers cost: python -m benchmarks.mcp_bench

    connect    ten stdio servers that need 0.1 to 1 s to start: no more than 1.2 times the slowest
    call       a call of a tool that does nothing, beyond the server's own time: no more than 1.5 ms
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from handrail.mcp.config import ServerConfig
from handrail.mcp.open_peer import open_once
from handrail.session.servers.servers import Servers

SERVER = """
import json, sys, time
time.sleep(float(sys.argv[1]))
for line in sys.stdin:
    begun = time.perf_counter()
    message = json.loads(line)
    if "id" not in message:
        continue
    results = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
        "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    }
    result = results.get(message["method"], {"content": [{"type": "text", "text": "done"}]})
    spent = time.perf_counter() - begun
    result["_meta"] = {"spent": spent}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\\n")
    sys.stdout.flush()
"""
SERVERS, CALLS = 10, 500
SLOWEST = 1.0


async def connect(waits: Sequence[float]) -> float:
    """How long servers need that start so slowly, side by side."""
    servers = Servers(os.environ, Path.cwd())
    servers.add(
        {
            f"s{number}": {"command": sys.executable, "args": ["-S", "-c", SERVER, str(wait)]}
            for number, wait in enumerate(waits)
        },
        "flag",
    )
    begun = time.perf_counter()
    notes = await servers.connect()
    spent = time.perf_counter() - begun
    await servers.aclose()
    assert not notes, notes
    return spent


async def call_overhead() -> float:
    """Milliseconds of a call beyond the server's own time, in the middle."""
    config = ServerConfig(
        "s", "stdio", command=sys.executable, args=("-S", "-c", SERVER, "0"), env=dict(os.environ), cwd="/"
    )
    spent: list[float] = []
    async with open_once(config) as server:
        for _ in range(CALLS):
            begun = time.perf_counter()
            output = await server.call("t", {"a": 1}, "call", lambda _news: None)
            whole = time.perf_counter() - begun
            assert output.mcp is not None
            spent.append(whole - output.mcp.meta["spent"])
    return statistics.median(spent) * 1000


def main() -> None:
    """Print the figures beside their limits."""
    slowest = asyncio.run(connect([SLOWEST]))
    ten = asyncio.run(connect([SLOWEST * (number + 1) / SERVERS for number in range(SERVERS)]))
    print(f"connect   ten servers: {ten / slowest:.2f} times the slowest (limit 1.2)")
    print(f"call      {asyncio.run(call_overhead()):.2f} ms beyond the server's own time (limit 1.5)")


if __name__ == "__main__":
    main()
