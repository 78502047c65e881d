"""What a session offers to complete: its commands, the prompts and the resources of its MCP servers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from handrail.errors import HandrailError
from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.session.servers import mentions as server_mentions
    from handrail.session.servers import prompts as server_prompts
    from handrail.session.session import Session
    from handrail.tui.interactive.chat import Chat
else:  # the first frame does not need them
    server_mentions = lazy("handrail.session.servers.mentions")
    server_prompts = lazy("handrail.session.servers.prompts")


class SessionCompletions:
    """Asks the session of a chat. `start` starts work in the background, `report` shows what went wrong with it."""

    def __init__(
        self,
        chat: "Callable[[], Chat | None]",
        start: "Callable[[Awaitable[None]], asyncio.Task[None]]",
        report: Callable[[str], None],
    ) -> None:
        self._chat = chat
        self._start = start
        self._report = report
        self._connecting: asyncio.Task[None] | None = None

    def command_hints(self) -> dict[str, str]:
        """The commands that can be typed, each with its hint and what it does."""
        chat = self._chat()
        if chat is None:
            return {}
        listed = {**chat.session.commands.by_name(), **chat.commands}
        return {name: f"{each.hint} {each.description}".strip() for name, each in listed.items()}

    async def argument_values(self, text: str) -> tuple[str, Sequence[str]]:
        """What was begun of an argument of a server's prompt, and the values that the server proposes for it."""
        chat = self._chat()
        servers = chat.session.servers if chat else None
        return await server_prompts.argument_values(servers, text) if servers else ("", ())

    async def server_mentions(self, begun: str) -> Sequence[tuple[str, str]]:
        """What an at sign can name of MCP servers; a colon behind the name of one connects them."""
        chat = self._chat()
        session = chat.session if chat else None
        if session is None or not session.servers:
            return ()
        name, colon, _ = begun.partition(":")
        if colon and name in session.servers.by_status() and self._connecting is None:
            self._connecting = self._start(self._connect(session))
        if self._connecting is not None:
            await asyncio.wait((self._connecting,))
        return server_mentions.server_mentions(session.servers, begun)

    async def _connect(self, session: "Session") -> None:
        try:
            await session.connect()
        except HandrailError as error:
            self._report(str(error))
