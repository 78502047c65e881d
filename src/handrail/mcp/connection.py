"""
One configured server over a whole session: connected in a task of its own, listed anew when it says so, reconnected.

    pending -> connected -> pending (a remote server is lost, and tried again) -> connected | failed
    pending -> failed | needs-auth
    any     -> disabled

A lost server keeps its tools, so that requests stay as they are; a call of one says why it cannot be made.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from handrail.conversation.blocks import ResultBlock
from handrail.conversation.logger import get_logger
from handrail.errors import (
    AuthorizationNeededError,
    HandrailError,
    HttpStatusError,
    McpError,
    SessionLostError,
    UnreachableError,
)
from handrail.lazy import lazy
from handrail.mcp.config import REMOTE, ServerConfig, place_of
from handrail.mcp.known_places import NOWHERE
from handrail.mcp.offers import INSTRUCTIONS
from handrail.mcp.open_peer import NO_PARTS, ServerParts, open_server
from handrail.mcp.peer import OnProgress
from handrail.mcp.server import Listing, PartialArgument, Server
from handrail.mcp.server_changes import BACKOFF, ServerChanges
from handrail.records import record
from handrail.tools.output import Output

if TYPE_CHECKING:
    from handrail.mcp import tools as mcp_tools
else:  # it loads what checks schemas, and a first request does not wait for that
    mcp_tools = lazy("handrail.mcp.tools")

log = get_logger(__name__)

FIRST_TRIES = 3


@record
class ConnectionEvents:
    """What a connection tells after it was first settled, and how it waits between tries."""

    on_change: Callable[[], None] = lambda: None
    """Its tools, prompts, resources or status have changed."""
    on_update: Callable[[str, str], None] = lambda _server, _uri: None
    """A resource of that server, at that address, has changed."""
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep


class ServerConnection:
    """One server. `resolve` gives its configuration each time it is connected, or raises McpError."""

    def __init__(
        self,
        name: str,
        resolve: Callable[[], ServerConfig],
        parts: ServerParts = NO_PARTS,
        events: ConnectionEvents = ConnectionEvents(),  # noqa: B008  # frozen
    ) -> None:
        self.name = name
        self.status = "pending"
        self.error = ""
        self.tools: tuple[mcp_tools.McpTool, ...] = ()
        self.problems: tuple[str, ...] = ()
        self.instructions = ""
        """What it says about the use of its tools."""
        self.server: Server | None = None
        self.place = NOWHERE
        self.was_tried = False
        """Whether its entry made sense, so that it was asked."""
        self._resolve = resolve
        self._parts = parts
        self._events = events
        self._lists: dict[str, Listing] = {}
        self._settled = asyncio.Event()
        self._changes = ServerChanges(partial(events.on_update, name), events.pause)
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    # Its life

    def start(self) -> None:
        """Connect in the background."""
        if self._task is None or self._task.done():
            self._closing = False
            self._settled = asyncio.Event()  # the one before belongs to the loop that waited for it
            self.status, self.error = "pending", ""
            self._task = asyncio.create_task(self._live(), name=f"MCP server {self.name}")

    async def wait_until_settled(self) -> None:
        """Wait until it is connected, or it is clear that it will not be soon."""
        await self._settled.wait()

    @property
    def is_settled(self) -> bool:
        """Whether it was connected, or could not be."""
        return self._settled.is_set()

    async def aclose(self, status: str = "pending") -> None:
        """End the connection. Never raises; may be called twice, in any order with others, from any task."""
        if self._task is not None and not self._task.done():
            if not self._closing:
                self._closing = True
                self._task.cancel()
            await asyncio.wait({self._task})
        self.status = status if self.status != "failed" else self.status

    def forget(self, status: str, error: str = "") -> None:
        """Take its tools away for good: it may not be used any more."""
        self.tools, self.problems, self._lists, self.instructions = (), (), {}, ""
        self.status, self.error = status, error

    async def _live(self) -> None:
        try:
            await self._connect_first()
            self._events.on_change()
            while self.server is not None:
                await self._serve(self.server)
                await self._reconnect()
        except Exception as error:
            log.exception("the connection to the MCP server %r failed", self.name)
            self._fail("failed", f"it could not be handled: {error!r}.")
            self._events.on_change()
        finally:
            await self._drop()
            self._settled.set()

    async def _connect_first(self) -> None:
        for seconds in (*BACKOFF[: FIRST_TRIES - 1], 0.0):
            try:
                config = self._resolve()
                self.was_tried = True
                self._settle(await self._open(config))
                return
            except AuthorizationNeededError as error:
                self._fail("needs-auth", str(error))
                return
            except HandrailError as error:
                self._fail("failed", str(error))
                if not _may_pass(error):
                    return
            if not seconds:
                return
            await self._events.pause(seconds)

    async def _reconnect(self) -> None:
        """After a loss: try again and again, if it is elsewhere. A program that ended is not started again."""
        lost = self.server.peer.ended.result() if self.server else ""
        self.status, self.error = "failed", f"it is lost: {lost.rstrip('.')}."
        await self._drop()
        for seconds in BACKOFF if self._is_remote() else ():
            self.status = "pending"
            self._events.on_change()
            try:
                self._settle(await self._open(self._resolve()))
                self._events.on_change()
                return
            except AuthorizationNeededError as error:
                self._fail("needs-auth", str(error))
                break
            except HandrailError as error:
                self._fail("pending", str(error))
            await self._events.pause(seconds)
        if self.status == "pending":
            self.status = "failed"
        self._events.on_change()

    def _is_remote(self) -> bool:
        try:
            return self._resolve().transport in REMOTE
        except HandrailError:
            return False

    async def _open(self, config: ServerConfig) -> Server:
        self.place = place_of(config)
        server = await open_server(config, self._parts, self._changes.take)
        try:
            server.lists.update({kind: each for kind, each in self._lists.items() if each.is_fresh})
            await server.load()
        except BaseException:
            await server.aclose()
            raise
        return server

    def _settle(self, server: Server) -> None:
        self.server = server
        self._lists = server.lists
        self._take_tools(server)
        self.status, self.error = "connected", ""
        self._settled.set()

    def _take_tools(self, server: Server) -> None:
        described, refused = self._parts.accept(self.name, server.described)
        accepted = [tool for tool in described if tool.name != INSTRUCTIONS]
        self.instructions = next((tool.description for tool in described if tool.name == INSTRUCTIONS), "")
        self.tools, problems = mcp_tools.tools_of(self, accepted, self.tools, self._parts.result_chars)
        self.problems = (*refused, *problems)

    def _fail(self, status: str, error: str) -> None:
        self.status, self.error = status, error
        self._settled.set()

    async def _drop(self) -> None:
        """Close the server. If that is cancelled, it is still there to be closed."""
        if self.server is not None:
            await self.server.aclose()
            self.server = None

    async def _serve(self, server: Server) -> None:
        """Until the connection ends: list anew what has changed."""
        following = asyncio.create_task(self._changes.follow(server, partial(self._refresh, server)))
        try:
            await asyncio.wait({server.peer.ended})
        finally:
            following.cancel()
            await asyncio.wait({following})

    async def _refresh(self, server: Server, stale: Collection[str]) -> None:
        kept = dict(server.lists)
        for kind in stale:
            server.lists.pop(kind, None)
        with suppress(McpError):  # else the old lists stay
            await server.load(tuple(stale))
        server.lists = {**kept, **server.lists}
        self._lists = server.lists
        self._take_tools(server)
        self._events.on_change()

    # What is asked of it

    def reachable(self) -> Server:
        """The connected server; McpError with the reason if it is not connected."""
        if self.server is not None and self.status == "connected":
            return self.server
        if self.status == "pending":
            why = f" {self.error}" if self.error else ""
            raise McpError(f"The MCP server {self.name!r} is not connected at the moment.{why} Try again later.")
        why = self.error or f"it is {self.status}."
        raise McpError(f"The MCP server {self.name!r} is not connected: {why}")

    async def call(self, tool: str, given: Mapping[str, Any], call_id: str, on_progress: OnProgress) -> Output:
        """Call a tool; raises McpError. A server that lost our session, and so did nothing, is asked once more."""
        try:
            return await self.reachable().call(tool, given, call_id, on_progress)
        except SessionLostError:
            self._settled.clear()
            await self._settled.wait()
            return await self.reachable().call(tool, given, call_id, on_progress)

    async def read(self, uri: str) -> tuple[ResultBlock, ...]:
        """The contents of a resource; from then on changes of it are told."""
        server = self.reachable()
        blocks = await server.read(uri)
        await self._changes.subscribe(server, uri)
        return blocks

    async def unsubscribe(self, uri: str) -> None:
        """Tell no more changes of a resource."""
        await self._changes.unsubscribe(self.server, uri)

    async def complete(self, reference: Mapping[str, str], argument: PartialArgument) -> tuple[str, ...]:
        """Values for an argument of a prompt or a resource template; none if it is not connected or knows none."""
        try:
            return await self.reachable().complete(reference, argument)
        except McpError:
            return ()

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> Sequence[tuple[str, ResultBlock]]:
        """The messages that a prompt gives."""
        return await self.reachable().prompt(name, arguments)


def _may_pass(error: HandrailError) -> bool:
    """Whether another try may help: the server was not reached, or has a problem of its own."""
    if isinstance(error, HttpStatusError):
        return error.status >= 500
    return isinstance(error, UnreachableError)
