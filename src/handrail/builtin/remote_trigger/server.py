"""Speaks to a `handrail serve`: one request, one JSON object. No redirect is followed: the token goes nowhere else."""

import json
from collections.abc import Mapping
from typing import Any

from handrail.builtin.support.foreign_text import mark_foreign
from handrail.errors import HandrailError, ToolError
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest
from handrail.tools.remote import RemoteServer

MAX_BYTES = 2_000_000
SECONDS = 30.0


async def ask_server(
    server: RemoteServer, env: Mapping[str, str], method: str, path: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The answer of a server; ToolError if it refuses, cannot be reached or answers with something else."""
    data = b"" if body is None else json.dumps(body).encode()
    headers = (
        ("authorization", f"Bearer {server.token}"),
        ("accept", "application/json"),
        ("user-agent", "handrail (RemoteTrigger)"),
        *((("content-type", "application/json"),) if data else ()),
    )
    request = HttpRequest(f"{server.url.rstrip('/')}{path}", headers, data, method)
    try:
        async with HttpClient(env, proxy_loopback=False, keep_alive=False) as client:
            answer = await client.fetch(request, max_bytes=MAX_BYTES, timeout=SECONDS)
    except TimeoutError as error:
        raise ToolError(f"{server.name} gave no answer within {SECONDS:g} seconds. Try again later.") from error
    except HandrailError as error:
        raise ToolError(f"{server.name} cannot be reached: {error}. Tell the user.") from error
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        found = None
    if answer.status == 401:
        raise ToolError(f"{server.name} does not know our token. Tell the user to check remoteServers.{server.name}.")
    said = found.get("error") if isinstance(found, dict) else None
    if not 200 <= answer.status < 300:
        why = f":\n{mark_foreign(str(said)[:1000], f'the server {server.name}')}" if said else "."
        raise ToolError(f"{server.name} refused with status {answer.status}{why}")
    if not isinstance(found, dict) or answer.cut:
        raise ToolError(f"{server.name} at {server.url} did not answer as a handrail serve does. Tell the user.")
    return found
