"""The tools of MCP servers in a conversation: offered when a server connects, taken back when it is refused."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment
from handrail.errors import HandrailError
from handrail.hooks.texts import reminder
from handrail.mcp.messages import shown_line
from handrail.session.conversation import Conversation
from handrail.session.servers.servers import Servers, first_wait
from handrail.session.settings.session_settings import SessionSettings
from handrail.tools.pool import SEARCH_TOOL

MAX_UPDATES, MAX_ADDRESS = 20, 500
"""The most changes of resources that a request tells, and the most characters of each address."""


def _no_listener() -> None:
    """Nothing listens yet."""


class ServerTools:
    """Connects the servers of a session, and offers their tools to its conversation."""

    def __init__(
        self,
        servers: Servers,
        settings: SessionSettings,
        conversation: Conversation,
        on_warning: Callable[[str], None],
        *,
        wait_for_all: bool = False,
    ) -> None:
        self.is_connected = False
        self.on_change: Callable[[], None] = _no_listener
        """Called when the servers may offer other tools than before."""
        self._servers = servers
        self._settings = settings
        self._conversation = conversation
        self._on_warning = on_warning
        self._wait_for_all = wait_for_all
        self._checks: set[asyncio.Future[None]] = set()
        self._loop: asyncio.AbstractEventLoop
        settings.on_change.append(self._recheck)
        servers.on_update = self._note_update

    async def connect(self, *, patient: bool) -> None:
        """Connect, once, and offer the tools of servers that answer in time; if `patient`, wait for all of them."""
        if self.is_connected and self._loop.is_closed():  # its connections went with it
            await self._servers.aclose()
            self.is_connected = False
        if self.is_connected and self._loop is not asyncio.get_running_loop():
            raise HandrailError(
                "The MCP servers of this agent were started in another event loop. Use the agent in one loop: either "
                "with ask_sync() and run_sync(), or with ask() and run()."
            )
        if not self.is_connected:
            self._loop, loaded = asyncio.get_running_loop(), self._settings.loaded
            catalog = self._conversation.state.catalog
            can_search = catalog.pool.find_listed(SEARCH_TOOL) is not None
            setting = loaded.settings.get("mcpWaitMs")
            wait = first_wait(loaded.env, setting, can_search=can_search, for_all=self._wait_for_all)
            skips_known = wait.skips_known and not self._conversation.messages  # they may refer to tools
            catalog.settle, catalog.find_expected = self._servers.settle, self._servers.expected_tools
            warnings = await self._servers.connect(wait.seconds, self._offer_late, skips_known=skips_known)
            self.is_connected = True
            self._offer(warnings)
            await self._confirm()
        if patient:
            await self._servers.settle()

    async def connect_new(self) -> None:
        """Servers were added or dropped: connect what is new, and offer what there is now."""
        if not self.is_connected:
            await self.connect(patient=False)
            return
        self._offer(await self._servers.connect(0.0, self._offer_late))

    async def _confirm(self) -> None:
        await self._servers.confirm()
        self._offer(())

    def _offer_late(self, warnings: Sequence[str]) -> None:
        self._offer(warnings)
        if self.is_connected:
            self._start_check(self._confirm())

    def _offer(self, warnings: Sequence[str]) -> None:
        self._conversation.set_mcp_tools(self._servers.offered)
        self.on_change()
        for warning in warnings:
            self._on_warning(warning)

    def _note_update(self, server: str, uri: str) -> None:
        address = shown_line(uri, MAX_ADDRESS)
        text = f"The resource {address} of the MCP server {server} has changed since it was read."
        self._conversation.state.mailbox.note(Attachment("resource", (Text(reminder(text)),)), most=MAX_UPDATES)

    def _recheck(self, _source: str) -> None:
        """Settings changed, perhaps in a thread of a tool: servers that are refused now must go."""
        if self.is_connected:
            self._loop.call_soon_threadsafe(lambda: self._start_check(self._drop_refused()))

    def _start_check(self, work: Coroutine[Any, Any, None]) -> None:
        check = asyncio.ensure_future(work)
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)

    async def _drop_refused(self) -> None:
        if warnings := await self._servers.look_again():
            self._offer(warnings)
