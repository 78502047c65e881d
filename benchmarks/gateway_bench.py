"""
What the gateway adds to a call: python -m benchmarks.gateway_bench

The same client calls the same server, first as it is, then behind `handrail mcp serve --gateway` with a rule, by a pipe
and over HTTP. The middle of the differences should be no more than 2 ms.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.mcp_bench import SERVER

from handrail.mcp.config import ServerConfig
from handrail.mcp.open_peer import open_once

CALLS, ROUND = 1000, 50
LIMIT_MS = 2.0
BEHIND = {"mcpServers": {"s": {"command": sys.executable, "args": ["-S", "-c", SERVER, "0"]}}}
GATEWAY = (
    *("-m", "handrail", "mcp", "serve", "--gateway", "--strict-mcp-config", "--mcp-config", json.dumps(BEHIND)),
    *("--bare", "--allowedTools", "mcp__s__t"),
)


async def middle(config: ServerConfig, tool: str) -> float:
    """Milliseconds of a call: the best of the rounds' middles, because other programs disturb some rounds."""
    spent: list[float] = []
    async with open_once(config) as server:
        for _ in range(CALLS):
            begun = time.perf_counter()
            output = await server.call(tool, {"a": 1}, "call", lambda _news: None)
            spent.append(time.perf_counter() - begun)
            assert not output.is_error, output
    return min(statistics.median(spent[at : at + ROUND]) for at in range(0, CALLS, ROUND)) * 1000


def by_pipe(*args: str) -> ServerConfig:
    """A server that is started."""
    return ServerConfig("s", "stdio", command=sys.executable, args=args, env=dict(os.environ), cwd=os.getcwd())  # noqa: PTH109


@contextmanager
def over_http() -> Iterator[ServerConfig]:
    """The gateway over HTTP."""
    command = [sys.executable, *GATEWAY[:4], "--http", "--no-token", "--json", *GATEWAY[4:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield ServerConfig("s", "http", url=json.loads(process.stdout.readline())["url"])
        finally:
            process.terminate()


def main() -> None:
    """Print the figures beside their limit."""
    with tempfile.TemporaryDirectory() as state:
        os.environ |= {"HANDRAIL_STATE_DIR": state, "HANDRAIL_MCP_WAIT_MS": "60000"}
        direct = asyncio.run(middle(by_pipe("-S", "-c", SERVER, "0"), "t"))
        piped = asyncio.run(middle(by_pipe(*GATEWAY), "s__t"))
        with over_http() as config:
            posted = asyncio.run(middle(config, "s__t"))
    print(f"direct    {direct:.2f} ms a call")
    print(f"gateway   {piped:.2f} ms by pipe: {piped - direct:.2f} ms more (limit {LIMIT_MS:g})")
    print(f"          {posted:.2f} ms over HTTP: {posted - direct:.2f} ms more")


if __name__ == "__main__":
    main()
