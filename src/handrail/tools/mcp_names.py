"""Names of MCP servers and tools, as rules and models spell them."""

import re
from functools import lru_cache

RESOURCE_TOOLS = frozenset({"ListMcpResourcesTool", "ReadMcpResourceTool"})
"""The tools that list and read what servers offer besides tools."""


@lru_cache(maxsize=1_024)
def normalise(name: str) -> str:
    """The name of an MCP server or tool as rules and wire names spell it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


@lru_cache(maxsize=1_024)
def server_name(name: str) -> str:
    """A server's name without double underscores, so that `mcp__server__tool` splits in only one way."""
    return re.sub(r"_{2,}", "_", normalise(name)).strip("_") or "_"
