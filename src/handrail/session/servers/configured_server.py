"""One MCP server of a session's configuration: its entry, its connection, and what people were told of it."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from handrail.mcp.config import expand_variables
from handrail.mcp.connection import ServerConnection

KNOWN_SCOPES = ("local", "project", "user", "policy")
"""The scopes of servers that `handrail mcp` finds by name, because a file names them."""


class ConfiguredServer:
    """One server of the configuration: where it is written, and its connection."""

    def __init__(self, name: str, entry: Mapping[str, Any], scope: str) -> None:
        self.name = name
        self.entry = entry
        self.scope = scope
        self.connection: ServerConnection
        self.said = "pending"
        """The status that a person knows of."""
        self.known_tools: Sequence[str] | None = None
        """The tools that were approved in an earlier session, by its own names; None if it is new."""
        self.is_awaited = False
        self.was_missed = False
        """Whether a person was told that the work begins without it."""

    @property
    def status(self) -> str:
        """How it stands, in a word."""
        return self.connection.status

    @property
    def is_connecting(self) -> bool:
        """Whether it has not answered since it was first asked."""
        return self.status == "pending" and not self.connection.is_settled

    @property
    def always_loads(self) -> bool:
        """Whether the model is sent the definitions of its tools from the first request on."""
        return self.entry.get("alwaysLoad") is True

    async def connect_now(self) -> None:
        """Connect, and wait until that is settled; no one is told of it as of a change."""
        self.is_awaited = True
        try:
            self.connection.start()
            await self.connection.wait_until_settled()
        finally:
            self.is_awaited = False
            self.said = self.status

    def forms(self, env: Mapping[str, str]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The entry as it is written, and as it is used: with the values of variables."""
        entry = self.entry
        texts = {key: entry[key] for key in ("command", "url") if isinstance(entry.get(key), str)}
        used = {key: expand_variables(text, env) for key, text in texts.items()}
        listed = entry.get("args")
        args = [expand_variables(str(word), env) for word in (listed if isinstance(listed, list) else ())]
        return entry, {**entry, **used, "args": args}

    def status_json(self) -> dict[str, Any]:
        """How it stands, in the form that programs ask for."""
        link = self.connection
        status: dict[str, Any] = {"name": self.name, "status": link.status, "scope": self.scope}
        if link.error:
            status["error"] = link.error
        if link.server is not None:
            status["serverInfo"] = dict(link.server.welcome.info)
            status["tools"] = [
                {"name": tool.mcp.tool if tool.mcp else tool.name, "annotations": tool.annotations}
                for tool in link.tools
            ]
        return status

    def notes(self) -> list[str]:
        """What a person should know about it."""
        link = self.connection
        self.said = link.status
        named = f"The MCP server {self.name!r} "
        error = f"it {link.error.removeprefix(named)}" if link.error.startswith(named) else link.error
        failed = [f"the MCP server {self.name!r} is not used: {error}{self._advice()}"] if error else []
        return failed + [f"a tool of the MCP server {self.name!r} is left out: {why}" for why in link.problems]

    def _advice(self) -> str:
        """How to look into a program or an address that does not work; empty if the entry itself is wrong."""
        if self.status != "failed" or not self.connection.was_tried or self.entry.get("type") == "sdk":
            return ""
        if self.scope in KNOWN_SCOPES:
            return f" Look into it with: handrail mcp test {shlex.quote(self.name)}"
        return "" if self.entry.get("url") else " Run its command by itself to see why."
