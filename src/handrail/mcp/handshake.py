"""
Finds out which revision a server speaks, and greets it.

A server of 2026-07-28 answers `server/discover`. Older ones refuse it or say nothing: these are greeted with
`initialize`. A server that is slow to start is given time; both questions are then under way, and the first that is
answered well decides.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from handrail.errors import HttpStatusError, JsonRpcError, McpError
from handrail.mcp.dialect import CLIENT, LEGACY, MODERN, PREFIX, UNDECIDED, UNSUPPORTED_VERSION, Dialect
from handrail.mcp.messages import METHOD_NOT_FOUND
from handrail.mcp.peer import Peer
from handrail.records import record

PATIENCE = 1.0
"""Seconds after which a server that has not answered `server/discover` is greeted in the old way too."""
NEW_SERVER = (UNSUPPORTED_VERSION, METHOD_NOT_FOUND)
"""How a new server refuses the old greeting."""

Era = Literal["legacy", "modern"]


@record
class Welcome:
    """What a server says of itself."""

    era: Era
    version: str
    capabilities: Mapping[str, Any]
    info: Mapping[str, Any]
    instructions: str = ""

    def offers(self, what: str, option: str = "") -> bool:
        """Whether it has that capability, with that option."""
        found = self.capabilities.get(what)
        return isinstance(found, Mapping) and (not option or found.get(option) is True)


class _OldServerError(McpError):
    """The server does not know the present revision."""


async def greet(
    peer: Peer, offered: Mapping[str, Any], *, time_limit: float, known: Era | None = None, over_http: bool = False
) -> Welcome:
    """
    Agree with a server on a revision; McpError if there is none.

    `offered` are our capabilities, `known` the era that this server was of before.
    """
    try:
        async with asyncio.timeout(time_limit):
            if known == "legacy":
                try:
                    return await _initialize(peer, offered, time_limit)
                except JsonRpcError as error:
                    if error.code not in NEW_SERVER:
                        raise
                    return await _discover(peer, offered, time_limit, over_http=over_http)
            return await _probe(peer, offered, time_limit, over_http=over_http)
    except TimeoutError as error:
        raise McpError(f"The MCP server {peer.name!r} did not answer in {time_limit:g} s.") from error


async def _probe(peer: Peer, offered: Mapping[str, Any], time_limit: float, *, over_http: bool) -> Welcome:
    discovery = asyncio.ensure_future(_discover(peer, offered, time_limit, over_http=over_http))
    greeting: asyncio.Future[Welcome] | None = None
    try:
        await asyncio.wait({discovery}, timeout=PATIENCE)
        if discovery.done():
            try:
                return discovery.result()
            except _OldServerError:
                return await _initialize(peer, offered, time_limit)
        greeting = asyncio.ensure_future(_initialize(peer, offered, time_limit))
        await asyncio.wait({discovery, greeting}, return_when=asyncio.FIRST_COMPLETED)
        if discovery.done() and discovery.exception() is None:
            peer.dialect = _modern(offered, over_http=over_http)
            return discovery.result()
        try:
            return await greeting
        except JsonRpcError as error:
            if error.code not in NEW_SERVER:
                raise
            welcome = await discovery
            peer.dialect = _modern(offered, over_http=over_http)
            return welcome
    finally:
        for each in (discovery, greeting):
            if each is not None:
                await _drop(each)


async def _drop(task: "asyncio.Future[Welcome]") -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()


def _modern(offered: Mapping[str, Any], *, over_http: bool) -> Dialect:
    return Dialect(MODERN, offered, cancels_by_closing=over_http)


async def _discover(peer: Peer, offered: Mapping[str, Any], time_limit: float, *, over_http: bool) -> Welcome:
    peer.dialect = _modern(offered, over_http=over_http)
    try:
        try:
            answer = await peer.request("server/discover", {}, time_limit=time_limit)
        except JsonRpcError as error:
            if MODERN not in _supported_revisions(error):
                raise _not_modern(peer, error) from error
            answer = await peer.request("server/discover", {}, time_limit=time_limit)
    except JsonRpcError as error:
        raise _not_modern(peer, error) from error
    except HttpStatusError as error:
        if error.status >= 500 or error.status in (401, 403):
            raise
        raise _OldServerError(str(error)) from error
    match answer:
        case {"supportedVersions": list(versions), "capabilities": Mapping() as capabilities} if MODERN in versions:
            meta = answer.get("_meta")
            info = meta.get(f"{PREFIX}serverInfo") if isinstance(meta, Mapping) else None
            return Welcome("modern", MODERN, capabilities, _mapping(info), _text(answer.get("instructions")))
        case _:
            raise _OldServerError("it does not list the present revision")


def _supported_revisions(error: JsonRpcError) -> tuple[str, ...]:
    """The revisions that a refusal of ours names."""
    listed = error.data.get("supported") if isinstance(error.data, Mapping) else None
    return tuple(map(str, listed)) if error.code == UNSUPPORTED_VERSION and isinstance(listed, list) else ()


def _not_modern(peer: Peer, error: JsonRpcError) -> McpError:
    """What an error in the answer to `server/discover` means: an old server, or one that is too new."""
    supported = _supported_revisions(error)
    if supported and not {MODERN, *LEGACY}.intersection(supported):
        listed = ", ".join(supported[:5])
        return McpError(f"The MCP server {peer.name!r} only speaks revisions of MCP that handrail does not: {listed}.")
    return _OldServerError(str(error))


async def _initialize(peer: Peer, offered: Mapping[str, Any], time_limit: float) -> Welcome:
    peer.dialect = UNDECIDED
    hello = {"protocolVersion": LEGACY[0], "capabilities": dict(offered), "clientInfo": CLIENT}
    answer = await peer.request("initialize", hello, time_limit=time_limit)
    version = answer.get("protocolVersion")
    if version is not None and version not in LEGACY:
        raise McpError(
            f"The MCP server {peer.name!r} speaks the revision {str(version)[:40]!r} of MCP, which handrail does not."
        )
    peer.dialect = Dialect(version or LEGACY[0], offered)
    await peer.notify("notifications/initialized", {})
    return Welcome(
        "legacy",
        peer.dialect.version,
        _mapping(answer.get("capabilities")),
        _mapping(answer.get("serverInfo")),
        _text(answer.get("instructions")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
