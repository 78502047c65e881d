"""What the MCP servers of a session offer besides tools: resources and prompts, without what a rule denies."""

from collections.abc import Callable, Iterator, Sequence

from handrail.conversation.blocks import ResultBlock
from handrail.errors import McpError
from handrail.mcp.connection import ServerConnection
from handrail.mcp.known_places import NOWHERE, ServerPlace
from handrail.mcp.offers import RemotePrompt
from handrail.tools.context import McpResource

Denies = Callable[[str, str], bool]
"""Whether a rule takes away what a server has under a name; without a name, the server as a whole."""


class ServerOffers:
    """The resources and prompts of the connected servers. A server that a rule denies as a whole is not there."""

    def __init__(self, connections: Callable[[], Sequence[ServerConnection]], denies: Denies) -> None:
        self._connections = connections
        self._denies = denies

    def resources(self) -> dict[str, tuple[McpResource, ...]]:
        """What the connected servers offer to read, and templates of such addresses."""
        return {link.name: link.server.resources for link in self._visible() if link.server}

    def instructions(self) -> dict[str, str]:
        """What the connected servers say about the use of their tools."""
        return {link.name: link.instructions for link in self._visible() if link.server and link.instructions}

    def prompts(self) -> Iterator[tuple[ServerConnection, RemotePrompt]]:
        """What the connected servers offer to say."""
        for link in self._visible():
            for prompt in link.server.prompts if link.server else ():
                if not self._denies(link.name, prompt.name):
                    yield link, prompt

    def find(self, server: str) -> ServerConnection:
        """The connection of a server; McpError if there is none, or a rule denies it."""
        visible = {link.name: link for link in self._visible()}
        if server not in visible:
            raise McpError(f"There is no MCP server {server!r}. Known: {', '.join(visible) or 'none'}.")
        return visible[server]

    async def read(self, server: str, uri: str) -> tuple[ResultBlock, ...]:
        """The contents of a resource; McpError if it cannot be had."""
        return await self.find(server).read(uri)

    def place(self, server: str) -> ServerPlace:
        """Where a server is; nowhere if there is none of that name."""
        return next((link.place for link in self._connections() if link.name == server), NOWHERE)

    def _visible(self) -> tuple[ServerConnection, ...]:
        return tuple(link for link in self._connections() if not self._denies(link.name, ""))
