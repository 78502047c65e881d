"""The prompts and resources of the servers behind us. Their tools are tools like all others."""

from collections.abc import Mapping
from typing import Any

from handrail.conversation.blocks import Text
from handrail.errors import JsonRpcError
from handrail.gateway.client import McpClient
from handrail.gateway.content import block_part
from handrail.gateway.governed import GovernedTools
from handrail.gateway.listing import shown_name
from handrail.mcp.connection import ServerConnection
from handrail.mcp.messages import INVALID_PARAMS
from handrail.mcp.offers import RemotePrompt
from handrail.mcp.tools import tool_name
from handrail.tools.context import RunContext


class ServersBehind:
    """What one client may see of them."""

    def __init__(self, tools: GovernedTools) -> None:
        self._tools = tools

    def prompts(self) -> list[dict[str, Any]]:
        """Their prompts, named as tools are."""
        return [_prompt_definition(name, prompt) for name, (_, prompt) in self._prompts().items()]

    async def prompt(self, name: str, given: Mapping[str, str]) -> dict[str, Any]:
        """The messages of a prompt."""
        if name not in self._prompts():
            raise JsonRpcError(f"There is no prompt {name[:100]!r}.", INVALID_PARAMS)
        connection, prompt = self._prompts()[name]
        spoken = await connection.prompt(prompt.name, given)
        messages = [{"role": role, "content": block_part(block)} for role, block in spoken]
        found: dict[str, Any] = self._tools.redact({"description": prompt.description, "messages": messages})
        return found

    def resources(self) -> list[dict[str, Any]]:
        """Their resources; of two with one address that of the first server."""
        found: dict[str, dict[str, Any]] = {}
        for server, resources in self._resources().items():
            for each in resources:
                kind = {"mimeType": each.mime_type} if each.mime_type else {}
                shown = {"uri": each.uri, "name": each.name or each.uri, "description": each.description, **kind}
                found.setdefault(each.uri, {**shown, "_meta": {"handrail/server": server}})
        return list(found.values())

    async def read(self, uri: str, client: McpClient, run: RunContext) -> list[dict[str, Any]]:
        """The contents of a resource, read by a governed call; JsonRpcError if that is refused or fails."""
        server = next((name for name, found in self._resources().items() if uri in {each.uri for each in found}), None)
        if server is None:
            raise JsonRpcError(f"There is no resource {uri[:200]!r}.", INVALID_PARAMS, {"uri": uri})
        outcome, _ = await self._tools.run("ReadMcpResourceTool", {"server": server, "uri": uri}, client, run)
        if outcome.result.is_error:
            raise JsonRpcError(str(self._tools.redact(outcome.result.text)), INVALID_PARAMS, {"uri": uri})
        head = f"[resource of {server} at {uri}]\n"
        return [
            {"uri": uri, "text": self._tools.redact(block.text.removeprefix(head))}
            if isinstance(block, Text)
            else {"uri": uri, **_blob(block_part(block))}
            for block in outcome.result.content
        ]

    def _resources(self) -> Mapping[str, Any]:
        return {} if self._tools.servers is None else self._tools.servers.offers.resources()

    def _prompts(self) -> dict[str, tuple[ServerConnection, RemotePrompt]]:
        offered = () if self._tools.servers is None else self._tools.servers.offers.prompts()
        return {shown_name(tool_name(link.name, prompt.name)): (link, prompt) for link, prompt in offered}


def _prompt_definition(name: str, prompt: RemotePrompt) -> dict[str, Any]:
    arguments = [
        {"name": each.name, "description": each.description, "required": each.required} for each in prompt.arguments
    ]
    return {"name": name, "description": prompt.description, "arguments": arguments}


def _blob(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"mimeType": part.get("mimeType", "application/octet-stream"), "blob": part.get("data", "")}
