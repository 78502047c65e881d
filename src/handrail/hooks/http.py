"""A hook that is asked over HTTP: one POST, one answer, no redirects, no kept connections."""

import asyncio
import re
import ssl
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

import h11

from handrail.hooks.answers import Reply, reply_of
from handrail.hooks.specs import Http

VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
READ_SIZE = 64 * 1024
RESERVED = frozenset(("connection", "content-length", "content-type", "host", "transfer-encoding"))


async def post(hook: Http, body: bytes, headers: list[tuple[str, str]], max_bytes: int) -> Reply:
    """
    The answer of the endpoint.

    Raises:
        OSError, EOFError, h11.ProtocolError: there was no answer, or its status is not 2xx.
    """
    parts = urlsplit(hook.url)
    assert parts.hostname is not None
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    port = parts.port or (443 if tls else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=tls)
    try:
        connection = h11.Connection(h11.CLIENT)
        target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        own = {"host": parts.netloc, "connection": "close", "content-type": "application/json"}
        own["content-length"] = str(len(body))
        lines = [*own.items(), *((name, value) for name, value in headers if name.lower() not in RESERVED)]
        wire = [(name.encode(), value.encode()) for name, value in lines]
        writer.write(connection.send(h11.Request(method="POST", target=target, headers=wire)) or b"")
        writer.write((connection.send(h11.Data(data=body)) or b"") + (connection.send(h11.EndOfMessage()) or b""))
        return await _answer(connection, reader, max_bytes)
    finally:
        writer.transport.abort()


async def _answer(connection: h11.Connection, reader: asyncio.StreamReader, max_bytes: int) -> Reply:
    status, data, cut = 0, bytearray(), False
    while not cut:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_SIZE))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            data += event.data
            cut = len(data) > max_bytes
        elif isinstance(event, h11.EndOfMessage):
            break
        elif not isinstance(event, h11.InformationalResponse):
            raise EOFError("the server closed the connection without an answer")
    reply = reply_of(bytes(data[:max_bytes]), cut=cut)
    if not 200 <= status < 300:
        raise ConnectionError(f"it answered with status {status}: {reply.text[:200]}")
    return reply


def filled_headers(hook: Http, env: Mapping[str, str], limit: Collection[str] | None) -> list[tuple[str, str]]:
    """The headers with variables put in; a name that is not allowed by hook and settings becomes nothing."""
    allowed = hook.variables if limit is None else hook.variables & frozenset(limit)

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return env.get(name, "") if name in allowed else ""

    return [(name, _one_line(VARIABLE.sub(value, text))) for name, text in hook.headers]


def _one_line(text: str) -> str:
    """A variable must not be able to add headers of its own."""
    return re.sub(r"[\x00-\x1f\x7f]", "", text).strip()
