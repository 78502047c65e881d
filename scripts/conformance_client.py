"""
The client that the conformance runner starts: `conformance_client.py URL`.

It connects as a session does, signs in where the server wants to know who asks, and uses what the server offers: each
tool, the first prompt and the first resource. The person at the browser is played: every sign-in is granted at once.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.errors import HandrailError, JsonRpcError
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest
from handrail.mcp.config import ServerConfig
from handrail.mcp.eras import EraMemory
from handrail.mcp.handshake import Era
from handrail.mcp.host import ClientHost, Elicitation, ElicitationAnswer
from handrail.mcp.open_peer import ServerParts, open_once
from handrail.mcp.server import Server
from handrail.mcp.tools import tools_of
from handrail.session.servers.setup import authorizers

METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""The client metadata document that the runner expects as client id."""
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}


class KnownEra(EraMemory):
    """The era that the runner asks for."""

    def find(self, config: ServerConfig) -> Era | None:
        version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
        return "legacy" if version and version < "2026" else None


async def accept(_question: Elicitation) -> ElicitationAnswer:
    """Accept every form with its defaults."""
    return ElicitationAnswer("accept", {})


async def visit(url: str) -> None:
    """Do what a browser does: ask for the page of the sign-in, and follow it back to our own port."""
    client = HttpClient({}, keep_alive=False)
    page = await client.fetch(HttpRequest(url, (), b"", "GET"), max_bytes=100_000, timeout=10)
    await client.fetch(HttpRequest(page.headers["location"], (), b"", "GET"), max_bytes=100_000, timeout=10)


def context() -> Mapping[str, Any]:
    """What the runner tells of the scenario."""
    given: Mapping[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    return given


async def use(server: Server) -> None:
    """Use what the server offers."""
    offered, problems = tools_of(server, server.tools)
    for problem in problems:
        print(problem)
    calls = [(each["name"], each["arguments"]) for each in context().get("toolCalls", ())]
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


async def run(url: str, state: Path) -> None:
    """Connect to the server at the address and use it; tokens are kept in `state`."""
    names = {"client_id": "clientId", "client_secret": "clientSecret"}
    registered = {ours: context()[theirs] for theirs, ours in names.items() if theirs in context()}
    config = ServerConfig("conformance", "http", url=url, oauth={"clientMetadataUrl": METADATA_URL, **registered})
    parts = ServerParts(
        env=os.environ,
        host=ClientHost(tuple, accept),
        eras=KnownEra(),
        authorizer_for=authorizers(os.environ, state, visit),
    )
    async with open_once(config, parts) as server:
        await use(server)


if __name__ == "__main__":
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(run(sys.argv[1], Path(folder)))
    except HandrailError as error:
        sys.exit(str(error))
