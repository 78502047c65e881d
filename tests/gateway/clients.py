"""Clients for the tests of our server: the official SDK, and bare requests."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from handrail.gateway import McpServer, serve_http
from handrail.serve.guard import token_digest
from handrail.serve.listen import BindAddress
from handrail.session.spec import SessionSpec
from mcp import Client, types

ERAS = ("legacy", "auto")
"""How the SDK connects: with a handshake, or as the server offers, which is without."""
TOKENS = {name: f"{name}-token-{'0' * 20}" for name in ("ann", "ben")}


@asynccontextmanager
async def url_of(server: McpServer, tokens: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """The address of a server that runs in this process; `tokens` by the names of clients."""
    known = None if tokens is None else {token_digest(token): name for name, token in tokens.items()}
    async with serve_http(server, BindAddress(), known) as address:
        yield f"{address.url}/mcp"


@asynccontextmanager
async def sdk_client(
    url: str,
    era: str,
    token: str = "",
    more: Mapping[str, str] | None = None,
    *,
    verify: ssl.SSLContext | bool = True,
    **callbacks: Any,
) -> AsyncIterator[Client]:
    """The official client, connected; `more` are further headers."""
    headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **(more or {})}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False, verify=verify) as http,
        Client(streamable_http_client(url, http_client=http), mode=era, **callbacks) as client,
    ):
        yield client


def answering(action: str, content: dict[str, Any] | None, heard: list[str]) -> Any:
    """A person who gives this answer to every form, and what they were asked."""

    async def answer(_context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        heard.append(params.message)
        return types.ElicitResult.model_validate({"action": action, "content": content})

    return answer


def text_of(result: types.CallToolResult) -> str:
    """The texts of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


def spec_in(folder: Path, **fields: Any) -> SessionSpec:
    """A session in a folder that keeps no files of its own elsewhere."""
    return SessionSpec(cwd=folder, keep_files=False, **fields)


def modern(
    method: str, params: Mapping[str, Any] | None = None, number: int = 1, **capabilities: Any
) -> dict[str, Any]:
    """A request of 2026-07-28."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**(params or {}), "_meta": meta}}


def headers_for(message: Mapping[str, Any]) -> dict[str, str]:
    """The headers that repeat such a request."""
    params = message["params"]
    named = {"mcp-name": name} if (name := params.get("name") or params.get("uri")) else {}
    version = {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"], **named}
    return {"content-type": "application/json", "accept": "application/json, text/event-stream", **version}
