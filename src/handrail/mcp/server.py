"""A connected MCP server: the handshake, the lists of its tools and resources, and calls."""

import base64
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from handrail.conversation.blocks import Image, ResultBlock, Text
from handrail.errors import McpError
from handrail.mcp.peer import OnProgress, Peer
from handrail.records import record
from handrail.tools.context import McpResource
from handrail.tools.output import McpMeta, Output

Found = TypeVar("Found")

PROTOCOL = "2025-11-25"
MAX_PAGES = 100
MAX_TOOLS = 10_000
MAX_BLOCKS = 500
MAX_WORDS = 2_000
"""The most characters of each text about a resource."""
MAX_IMAGE = 5 * 1024 * 1024
IMAGES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
"""The image types that models accept, and how each begins. A refused image would spoil all later requests."""


@record
class RemoteTool:
    """A tool as its server describes it, untrusted."""

    name: str
    description: str
    schema: Any
    annotations: Mapping[str, Any]
    meta: Mapping[str, Any]


class Server:
    """One server after its handshake."""

    def __init__(self, name: str, peer: Peer, info: Mapping[str, Any], *, call_time_limit: float) -> None:
        self.name = name
        self.info = info
        self.tools: tuple[RemoteTool, ...] = ()
        self.resources: tuple[McpResource, ...] = ()
        """The resources that it offered when it was connected."""
        self._peer = peer
        self._patience = call_time_limit

    async def call(self, tool: str, given: Mapping[str, Any], call_id: str, on_progress: OnProgress) -> Output:
        """Call a tool of the server; raises McpError if it does not answer, or answers with an error."""
        params = {"name": tool, "arguments": dict(given), "_meta": {"handrail/toolUseId": call_id}}
        answer = await self._peer.request("tools/call", params, time_limit=self._patience, on_progress=on_progress)
        return output_of(answer, self.name)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._peer.aclose()


async def connect(name: str, peer: Peer, *, time_limit: float = 30.0, call_time_limit: float = 600.0) -> Server:
    """Initialize a connection and list tools and resources; raises McpError if it is no MCP server."""
    hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "handrail", "version": "1"}}
    answer = await peer.request("initialize", hello, time_limit=time_limit)
    await peer.notify("notifications/initialized", {})
    info = answer.get("serverInfo")
    server = Server(name, peer, info if isinstance(info, Mapping) else {}, call_time_limit=call_time_limit)
    capabilities = answer.get("capabilities")
    if isinstance(capabilities, Mapping) and "tools" in capabilities:
        server.tools = await _list(peer, "tools", parse_tool, time_limit)
    if isinstance(capabilities, Mapping) and "resources" in capabilities:
        with suppress(McpError):  # its tools can be used without them
            server.resources = await _list(peer, "resources", parse_resource, time_limit)
    return server


async def _list(peer: Peer, kind: str, parse: Callable[[object], Found | None], time_limit: float) -> tuple[Found, ...]:
    found: list[Found] = []
    cursor: object = None
    for _ in range(MAX_PAGES):
        page = await peer.request(f"{kind}/list", {} if cursor is None else {"cursor": cursor}, time_limit=time_limit)
        listed = page.get(kind)
        found += [each for value in (listed if isinstance(listed, Sequence) else ()) if (each := parse(value))]
        cursor = page.get("nextCursor")
        if not cursor or len(found) > MAX_TOOLS:
            return tuple(found[:MAX_TOOLS])
    raise McpError(f"The list of {kind} has more than {MAX_PAGES} pages.")


def parse_resource(value: object) -> McpResource | None:
    """A resource of a server's list; None if it has no address."""
    match value:
        case {"uri": str(uri), **rest}:
            texts = (rest.get(key) for key in ("name", "description", "mimeType"))
            return McpResource(uri, *(text[:MAX_WORDS] if isinstance(text, str) else "" for text in texts))
        case _:
            return None


def parse_tool(value: object) -> RemoteTool | None:
    """A tool of a server's list; None if it has no name or no schema."""
    match value:
        case {"name": str(name), "inputSchema": Mapping() as schema, **rest}:
            text, notes, meta = rest.get("description"), rest.get("annotations"), rest.get("_meta")
            return RemoteTool(
                name,
                text if isinstance(text, str) else "",
                schema,
                notes if isinstance(notes, Mapping) else {},
                meta if isinstance(meta, Mapping) else {},
            )
        case _:
            return None


def output_of(answer: Mapping[str, Any], server: str) -> Output:
    """The output of a call, for the model and for programs."""
    content = answer.get("content")
    listed = content if isinstance(content, list) else ()
    blocks = tuple(_block(each, server) for each in listed[:MAX_BLOCKS])
    if len(listed) > MAX_BLOCKS:
        blocks += (Text(f"[{len(listed) - MAX_BLOCKS:,} more parts are left out]"),)
        content = listed[:MAX_BLOCKS]
    structured = answer.get("structuredContent")
    meta = answer.get("_meta")
    data = {"content": content, **({"structuredContent": structured} if structured is not None else {})}
    return Output(
        blocks=blocks,
        data=data,
        mcp=McpMeta(meta if isinstance(meta, Mapping) else {}, structured if isinstance(structured, Mapping) else None),
        is_error=answer.get("isError") is True,
    )


def _block(value: object, server: str) -> ResultBlock:
    match value:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return _image(data, kind)
        case {"type": "resource_link", "uri": str(uri), **rest}:
            return Text(f"[{rest.get('name') or 'resource'}: {uri}]")
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return Text(f"[resource of {server} at {uri}]\n{text}")
        case {"type": str(kind)}:
            return Text(f"[{kind} content, which cannot be shown here]")
        case _:
            return Text("[content that is not understood]")


def _image(data: str, kind: str) -> ResultBlock:
    if kind not in IMAGES:
        return Text(f"[image of the type {kind[:100]!r}, which cannot be shown here]")
    if len(data) > MAX_IMAGE:
        return Text(f"[image of {len(data):,} characters in base64; at most {MAX_IMAGE:,} can be shown here]")
    try:
        begins = base64.b64decode(data, validate=True).startswith(IMAGES[kind])
    except ValueError:
        begins = False
    return Image(data, kind) if begins else Text(f"[what is said to be {kind} and is not]")
