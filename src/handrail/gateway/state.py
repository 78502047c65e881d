"""What is known of a client from one request to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handrail.gateway.client import ClientLink, McpClient
from handrail.gateway.governed import GovernedTools
from handrail.mcp.dialect import MODERN
from handrail.session.overlapping_calls import OverlappingCalls


@dataclass(slots=True)
class ClientState:
    """One client: its name by its token, its tools, and what it said of itself."""

    name: str
    tools: GovernedTools
    calls: OverlappingCalls
    version: str = MODERN
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    level: str = ""
    """The lowest level of log messages that it wants; empty = none."""
    followed: set[str] = field(default_factory=set)
    """The addresses of resources whose changes it wants to know."""

    def client(self, link: ClientLink) -> McpClient:
        """The client of one request, as tools, prompts and resources meet it."""
        return McpClient(link, self.name, self.level)

    @property
    def is_modern(self) -> bool:
        """Whether each of its requests stands for itself."""
        return self.version == MODERN
