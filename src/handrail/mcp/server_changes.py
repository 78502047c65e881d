"""What a connected server says has changed: lists are asked for again, changes of resources are told."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from handrail.errors import McpError
from handrail.mcp.server import Listing, Server

BACKOFF = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each try to reach a lost server, or its stream of changes, again."""
QUIET, LONGEST_QUIET = 0.2, 30.0
"""
Seconds between a server's word that a list has changed and the question for it: more such words may follow.

If they follow at once every time, the seconds double.
"""
LIST_CHANGES = {f"notifications/{kind}/list_changed": kind for kind in ("tools", "prompts", "resources")}
MAX_SUBSCRIBED = 100
MAX_FAILURES = 10
"""How often in a row a stream of changes may fail before the server is not asked for it any more."""

Refresh: TypeAlias = Callable[[Collection[str]], Awaitable[None]]
"""Asks for these lists again."""


class ServerChanges:
    """The changes of one server. The resources that are followed stay followed when it is connected anew."""

    def __init__(self, on_update: Callable[[str], None], pause: Callable[[float], Awaitable[None]]) -> None:
        self._on_update = on_update
        self._pause = pause
        self._stale: set[str] = set()
        self._wake = asyncio.Event()
        self._subscribed: list[str] = []
        self._resubscribe = asyncio.Event()
        self._acknowledged = asyncio.Event()

    def take(self, method: str, params: Mapping[str, Any]) -> None:
        """Take in a notification of the server."""
        if (kind := LIST_CHANGES.get(method)) is not None:
            self._mark_stale(kind)
        elif method == "notifications/resources/updated":
            uri = str(params.get("uri"))
            if any(uri.startswith(each) for each in self._subscribed):  # it may lie below what was asked for
                self._on_update(uri)
        elif method == "notifications/subscriptions/acknowledged":
            self._acknowledged.set()

    async def follow(self, server: Server, refresh: Refresh) -> None:
        """Have what changes listed anew, until this is cancelled."""
        tasks = [asyncio.create_task(self._listen(server)), asyncio.create_task(self._refresh_lists(refresh))]
        try:
            await asyncio.gather(*(server.subscribe(uri) for uri in self._subscribed), return_exceptions=True)
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def subscribe(self, server: Server, uri: str) -> None:
        """Tell changes of a resource from now on, if the server can. Of too many, the first are followed no more."""
        if uri in self._subscribed:
            return
        if len(self._subscribed) >= MAX_SUBSCRIBED:
            await self.unsubscribe(server, self._subscribed[0])
        self._subscribed.append(uri)
        self._resubscribe.set()
        with suppress(McpError):
            await server.subscribe(uri)

    async def unsubscribe(self, server: Server | None, uri: str) -> None:
        """Tell no more changes of a resource."""
        if uri in self._subscribed:
            self._subscribed.remove(uri)
            self._resubscribe.set()
            if server is not None:
                with suppress(McpError):
                    await server.unsubscribe(uri)

    async def _refresh_lists(self, refresh: Refresh) -> None:
        """List anew what the server says has changed, as often as it says so, but not more often than we like."""
        quiet = QUIET
        while True:
            try:
                async with asyncio.timeout(quiet):
                    await self._wake.wait()
                quiet = min(2 * quiet, LONGEST_QUIET)
            except TimeoutError:
                quiet = QUIET
                await self._wake.wait()
            await self._pause(quiet)
            self._wake.clear()
            stale, self._stale = self._stale, set()
            await refresh({*stale, "templates"} if "resources" in stale else stale)

    async def _listen(self, server: Server) -> None:
        """The stream of changes of a server of 2026-07-28; when it breaks off, everything may have changed."""
        stream: asyncio.Future[None] | None = None
        failures = 0
        try:
            while failures < MAX_FAILURES:
                self._resubscribe.clear()
                if not (changes := server.changes(self._subscribed)):
                    await _end(stream)
                    stream = None
                    await self._resubscribe.wait()
                    continue
                stream = await self._replace(stream, _start(server, changes))
                if not await self._is_over(stream):
                    continue
                failures = 0 if self._acknowledged.is_set() else failures + 1
                await self._pause(BACKOFF[min(failures, len(BACKOFF) - 1)])
                for kind in LIST_CHANGES.values():
                    if not server.lists.get(kind, Listing()).is_fresh and server.welcome.offers(kind, "listChanged"):
                        self._mark_stale(kind)
        finally:
            await _end(stream)

    async def _replace(self, old: "asyncio.Future[None] | None", new: "asyncio.Future[None]") -> "asyncio.Future[None]":
        """End the old stream as soon as the new one is there, so that no change is lost in between."""
        self._acknowledged.clear()
        if old is not None and not old.done():
            await _first(new, self._acknowledged.wait())
        await _end(old)
        return new

    async def _is_over(self, stream: "asyncio.Future[None]") -> bool:
        """Wait until the stream ends, or there is more to follow; whether it has ended."""
        await _first(stream, self._resubscribe.wait())
        return stream.done()

    def _mark_stale(self, kind: str) -> None:
        self._stale.add(kind)
        self._wake.set()


def _start(server: Server, changes: Mapping[str, Any]) -> "asyncio.Future[None]":
    stream = asyncio.ensure_future(server.listen(changes))
    stream.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # that it ended is all that matters
    return stream


async def _first(stream: "asyncio.Future[None]", other: Coroutine[Any, Any, object]) -> None:
    waiting = asyncio.ensure_future(other)
    both: set[asyncio.Future[Any]] = {stream, waiting}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def _end(stream: "asyncio.Future[None] | None") -> None:
    if stream is not None:
        stream.cancel()
        await asyncio.gather(stream, return_exceptions=True)
