"""
Feeds: the growing record of a session, for any number of pages.

A feed looks at the files of its session only while a page listens. Each change has a number, and the newest changes are
kept, so that a page that was away for a moment goes on where it was; one that missed more begins again.
"""

import asyncio
import os
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from handrail.errors import SessionError
from handrail.view.files import RunFiles
from handrail.view.follow import RunFollower

LOOK_SECONDS = 0.02
KEPT_CHANGES = 500
IDLE_FEEDS = 3
MAX_TEXT = 300
"""So much of a long text is sent at first; the page asks for the rest of those that a person opens."""


class Feed:
    """One session and its changes."""

    def __init__(self, files: RunFiles) -> None:
        self.follower = RunFollower(files, most=MAX_TEXT)
        self.start = os.urandom(6).hex()
        self.number = 0
        self.listeners = 0
        self._changes: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT_CHANGES)
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self.is_stale = False
        """The file was replaced, and the record is that of another one."""

    @property
    def version(self) -> str:
        """The id of the newest change."""
        return f"{self.start}-{self.number}"

    async def look(self) -> None:
        """Read what is new, and wake the listeners if there is something; SessionError if the file was replaced."""
        async with self._lock:
            changed = await asyncio.to_thread(self.follower.look)
        if changed:
            self.number += 1
            self._changes.append((self.number, changed))
            news, self._news = self._news, asyncio.Event()
            news.set()

    async def record(self) -> dict[str, Any]:
        """The whole record, as it is now."""
        await self.look()
        return {**self.follower.reader.record().as_json(), "version": self.version}

    def since(self, version: str) -> list[dict[str, Any]] | None:
        """The changes after a version; None if they are no longer all known."""
        start, _, number = version.rpartition("-")
        if start != self.start or not number.isdecimal() or int(number) > self.number:
            return None
        wanted = [each for at, each in self._changes if at > int(number)]
        return wanted if len(wanted) == self.number - int(number) else None

    async def changes(self, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Changes after a version, as they come, each with its own version; one without content means: begin again."""
        self.listeners += 1
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())
        try:
            while True:
                news = self._news
                missed = self.since(version)
                if missed is None:
                    yield self.version, {}
                    return
                first = self.number - len(missed)
                for place, change in enumerate(missed, 1):
                    version = f"{self.start}-{first + place}"
                    yield version, change
                if not missed:
                    await news.wait()
        finally:
            self.listeners -= 1
            if not self.listeners and self._watcher is not None:
                self._watcher.cancel()
                self._watcher = None

    async def _watch(self) -> None:
        while True:
            try:
                await self.look()
            except SessionError:
                self.is_stale = True
                self.start = os.urandom(6).hex()  # every listener begins again
                self._news.set()
                return
            await asyncio.sleep(LOOK_SECONDS)


class Feeds:
    """The feeds that pages listen to, and the few that were asked for last."""

    def __init__(self, files_of: Callable[[str], RunFiles]) -> None:
        self._files_of = files_of
        self._feeds: OrderedDict[str, Feed] = OrderedDict()

    async def get(self, session: str) -> Feed:
        """The feed of a session; SessionError if there is no such session."""
        files = self._files_of(session)
        feed = self._feeds.get(session)
        if feed is None or feed.is_stale or feed.follower.files != files:
            feed = Feed(files)
            await feed.look()
            self._feeds[session] = feed
        self._feeds.move_to_end(session)
        idle = [name for name, each in self._feeds.items() if not each.listeners and each is not feed]
        for name in idle[:-IDLE_FEEDS]:
            del self._feeds[name]
        return feed
