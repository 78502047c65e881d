"""Serves an McpServer over HTTP, behind the guard."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from handrail.errors import JsonRpcError
from handrail.gateway.http import McpEndpoint
from handrail.gateway.offering import McpServer
from handrail.gateway.protocol import INVALID_REQUEST, refusal
from handrail.gateway.service import McpService
from handrail.lazy import lazy
from handrail.mcp.messages import Message
from handrail.serve.guard import Door
from handrail.serve.listen import Address, BindAddress, address_of, bind, check_endpoint, check_installed, with_names

if TYPE_CHECKING:
    from handrail.serve import server as http_server
else:
    http_server = lazy("handrail.serve.server")  # the extra `serve`

LOOPBACK = BindAddress()


@asynccontextmanager
async def serve_http(
    server: McpServer,
    endpoint: BindAddress = LOOPBACK,
    tokens: Mapping[str, str] | None = None,
    names: Iterable[str] = (),
) -> AsyncIterator[Address]:
    """
    Answer clients at `/mcp` while the block runs. `tokens`: the names of clients by the digests of their tokens.

    Without tokens, which only loopback allows, every program on this machine is the same client. `names` are host
    names by which clients reach it, besides its own: those of its certificate, or of a proxy in front of it.
    """
    check_installed()
    check_endpoint(endpoint, token=tokens is not None)
    listener = bind(endpoint)
    address = with_names(address_of(endpoint, listener), names)
    service = McpService(server)
    app = McpEndpoint(service)
    try:
        door = Door(address.hosts, address.origins, tokens, error=_error_json)
        async with http_server.serve(app, door, endpoint, listener):
            try:
                yield address
            finally:
                await app.aclose()
    finally:
        await asyncio.shield(service.aclose())


def _error_json(message: str) -> Message:
    return refusal(None, JsonRpcError(message, INVALID_REQUEST))
