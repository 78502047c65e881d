"""
The client that the conformance runner starts: `conformance_client.py URL`.

It connects as a session does, and uses what the server offers: each tool, the first prompt and the first resource.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from handrail.errors import HandrailError, JsonRpcError
from handrail.mcp.config import ServerConfig
from handrail.mcp.eras import EraMemory
from handrail.mcp.handshake import Era
from handrail.mcp.host import ClientHost, Elicitation, ElicitationAnswer
from handrail.mcp.open_peer import ServerParts, connected
from handrail.mcp.server import Server
from handrail.mcp.tools import tools_of

ARGUMENTS: Mapping[str, Mapping[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}


class KnownEra(EraMemory):
    """The era that the runner asks for."""

    def find(self, config: ServerConfig) -> Era | None:
        version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
        return "legacy" if version and version < "2026" else None


async def accept(_question: Elicitation) -> ElicitationAnswer:
    """Accept every form with its defaults."""
    return ElicitationAnswer("accept", {})


async def use(server: Server) -> None:
    """Use what the server offers."""
    offered, problems = tools_of(server, server.tools)
    for problem in problems:
        print(problem)
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    calls = [(each["name"], each["arguments"]) for each in context.get("toolCalls", ())]
    calls = calls or [(tool.remote.name, ARGUMENTS.get(tool.remote.name, {})) for tool in offered]
    for name, given in calls:
        try:
            print(name, await server.call(name, given, "call-1", lambda _news: None))
        except JsonRpcError as error:  # some servers list tools that cannot be called
            print(name, error)
    for prompt in server.prompts[:1]:
        print(await server.prompt(prompt.name, {}))
    for resource in server.resources[:1]:
        print(await server.read(resource.uri))


async def run(url: str) -> None:
    """Connect to the server at the address and use it."""
    config = ServerConfig("conformance", "http", url=url)
    parts = ServerParts(env=os.environ, host=ClientHost(tuple, accept), eras=KnownEra())
    async with connected(config, parts) as server:
        await use(server)


if __name__ == "__main__":
    try:
        asyncio.run(run(sys.argv[1]))
    except HandrailError as error:
        sys.exit(str(error))
