"""The flag --mcp-config: a file, or JSON, that names MCP servers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.errors import HandrailError

SERVERS_FORM = '{"mcpServers": {"name": {"command": "program"}}}'


def read_servers(text: str, cwd: Path) -> Mapping[str, Any]:
    """The servers of a --mcp-config, a file or JSON; HandrailError if it cannot be read, or holds none."""
    inline = text.strip().startswith("{")
    where = "the text" if inline else repr(text)
    try:
        value = json.loads(text if inline else (cwd / Path(text).expanduser()).read_text("utf-8-sig"))
    except OSError as error:
        raise HandrailError(
            f"--mcp-config: {text!r} cannot be read: {error.strerror}. Give a JSON file, or JSON: {SERVERS_FORM}."
        ) from error
    except ValueError as error:
        raise HandrailError(f"--mcp-config: {where} is not JSON: {error}. Write {SERVERS_FORM}.") from error
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise HandrailError(f"--mcp-config: {where} names no servers. Write {SERVERS_FORM}.")
    return servers
