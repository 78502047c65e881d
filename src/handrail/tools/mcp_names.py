"""Names of MCP servers and tools, as rules and models spell them."""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache

RESOURCE_TOOLS = frozenset({"ListMcpResourcesTool", "ReadMcpResourceTool"})
"""The tools that list and read what servers offer besides tools."""

MAX_NAME = 64


@lru_cache(maxsize=1_024)
def normalise(name: str) -> str:
    """The name of an MCP server or tool as rules and wire names spell it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


@lru_cache(maxsize=1_024)
def server_name(name: str) -> str:
    """A server's name without double underscores, so that `mcp__server__tool` splits in only one way."""
    return re.sub(r"_{2,}", "_", normalise(name)).strip("_") or "_"


def tool_name(server: str, tool: str) -> str:
    """The name that models see; the first double underscore ends the server. A long one ends in a stable digest."""
    name = f"mcp__{server_name(server)}__{normalise(tool)}"
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9]}_{digest}"


def server_of(tool: str, servers: Mapping[str, str]) -> tuple[str, str]:
    """The server that a tool of this name would be of, and how it stands; empty texts if there is none."""
    return next(
        ((name, how) for name, how in servers.items() if tool.startswith(f"mcp__{server_name(name)}__")), ("", "")
    )
