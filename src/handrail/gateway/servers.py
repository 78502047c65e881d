"""The prompts and resources of the servers behind us. Their tools are tools like all others."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from handrail.conversation.blocks import Text
from handrail.errors import JsonRpcError
from handrail.gateway.client import McpClient
from handrail.gateway.content import block_part
from handrail.gateway.governed import GovernedTools
from handrail.gateway.listing import shown_name
from handrail.gateway.prompt_call import PromptCall
from handrail.mcp.connection import ServerConnection
from handrail.mcp.messages import INVALID_PARAMS
from handrail.mcp.offers import RemotePrompt
from handrail.mcp.server import PartialArgument
from handrail.session.overlapping_calls import OverlappingCalls
from handrail.tools.catalog import instructions_text
from handrail.tools.context import McpResource
from handrail.tools.mcp_names import tool_name

MAX_INSTRUCTIONS = 16_384
EXPRESSION = re.compile(r"\{[^{}]*\}")


class ServersBehind:
    """What one client may see of them."""

    def __init__(self, tools: GovernedTools) -> None:
        self._tools = tools

    def instructions(self) -> str:
        """What they say about the use of their tools, as approved: each in its own name, and all of it bounded."""
        said = {} if self._tools.servers is None else self._tools.servers.offers.instructions()
        room, heard = MAX_INSTRUCTIONS, dict[str, str]()
        for server, text in sorted(said.items()):
            room -= len(text)
            if room >= 0:
                heard[server] = text
        others = sorted(said.keys() - heard.keys())
        left_out = f"\n\nLeft out for lack of room: the words of {', '.join(others)}." if others else ""
        return str(self._tools.redact(instructions_text(heard) + left_out)) if said else ""

    def prompts(self) -> list[dict[str, Any]]:
        """Their prompts, named as tools are."""
        return [_prompt_definition(name, prompt) for name, (_, prompt) in self._prompts().items()]

    async def prompt(
        self, name: str, given: Mapping[str, str], client: McpClient, calls: OverlappingCalls
    ) -> dict[str, Any]:
        """The messages of a prompt, had by a governed call; JsonRpcError if that is refused or fails."""
        connection, prompt = await self._find_prompt(name)
        call = PromptCall(connection, prompt)
        outcome = await self._tools.run(call.name, given, client, calls, tool=call)
        if outcome.result.is_error:
            raise JsonRpcError(str(self._tools.redact(outcome.result.text)), INVALID_PARAMS)
        spoken = call.messages
        if outcome.output is None or outcome.output.blocks != tuple(block for _, block in spoken):
            spoken = [("user", block) for block in outcome.result.content]  # a hook has put something in its place
        messages = [{"role": role, "content": block_part(block)} for role, block in spoken]
        found: dict[str, Any] = self._tools.redact({"description": prompt.description, "messages": messages})
        return found

    def resources(self) -> list[dict[str, Any]]:
        """Their resources; of two with one address that of the first server."""
        return self._resource_list("uri", is_template=False)

    def templates(self) -> list[dict[str, Any]]:
        """Their templates of resources, in the same way."""
        return self._resource_list("uriTemplate", is_template=True)

    def _resource_list(self, key: str, *, is_template: bool) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for server, resources in self._resources().items():
            for each in resources:
                if each.is_template is is_template:
                    kind = {"mimeType": each.mime_type} if each.mime_type else {}
                    shown = {key: each.uri, "name": each.name or each.uri, "description": each.description, **kind}
                    found.setdefault(each.uri, {**shown, "_meta": {"handrail/server": server}})
        return list(found.values())

    async def read(self, uri: str, client: McpClient, calls: OverlappingCalls) -> list[dict[str, Any]]:
        """The contents of a resource, read by a governed call; JsonRpcError if that is refused or fails."""
        server = await self._find_server(uri)
        outcome = await self._tools.run("ReadMcpResourceTool", {"server": server, "uri": uri}, client, calls)
        if outcome.result.is_error:
            raise JsonRpcError(str(self._tools.redact(outcome.result.text)), INVALID_PARAMS, {"uri": uri})
        head = f"[resource of {server} at {uri}]\n"
        return [
            {"uri": uri, "text": self._tools.redact(block.text.removeprefix(head))}
            if isinstance(block, Text)
            else {"uri": uri, **_blob(block_part(block))}
            for block in outcome.result.content
        ]

    async def follow(self, uri: str, client: McpClient, calls: OverlappingCalls) -> None:
        """Be told of changes of a resource. Who may read it may follow it: it is read once, under the rules."""
        await self.read(uri, client, calls)
        self._tools.followers[uri] += 1

    async def unfollow(self, uri: str) -> None:
        """Be told no more, unless another session of the client follows it."""
        if uri in self._tools.followers:
            self._tools.drop_followers([uri])
            if uri not in self._tools.followers and self._tools.servers is not None:
                await self._tools.servers.offers.find(await self._find_server(uri)).unsubscribe(uri)

    async def complete(self, reference: Mapping[str, Any], argument: PartialArgument) -> list[str]:
        """
        Values for an argument, from the server that has the prompt or the template; JsonRpcError if none has it.

        Where a rule asks about it, nothing is proposed: no one can be asked at every letter.
        """
        match reference:
            case {"type": "ref/prompt", "name": str(name)}:
                connection, prompt = await self._find_prompt(name)
                asked, part = {"type": "ref/prompt", "name": prompt.name}, prompt.name
            case {"type": "ref/resource", "uri": str(uri)}:
                servers = self._tools.servers
                server = await self._find_server(uri)
                assert servers is not None
                connection, asked, part = servers.offers.find(server), {"type": "ref/resource", "uri": uri}, ""
            case _:
                raise JsonRpcError("ref names no prompt and no resource template of this server.", INVALID_PARAMS)
        if self._tools.asks_about(connection.name, part):
            return []
        values: list[str] = self._tools.redact(list(await connection.complete(asked, argument)))
        return values

    async def _find_server(self, uri: str) -> str:
        """The name of the server that lists an address or a template of it, also if it is slow to start."""
        server = server_of(uri, self._resources())
        if server is None:
            await self._tools.settle()
            server = server_of(uri, self._resources())
        if server is None:
            raise JsonRpcError(f"There is no resource {uri[:200]!r}.", INVALID_PARAMS, {"uri": uri})
        return server

    async def _find_prompt(self, name: str) -> tuple[ServerConnection, RemotePrompt]:
        if name not in self._prompts():
            await self._tools.settle()
        found = self._prompts().get(name)
        if found is None:
            raise JsonRpcError(f"There is no prompt {name[:100]!r}.", INVALID_PARAMS)
        return found

    def _resources(self) -> Mapping[str, Sequence[McpResource]]:
        return {} if self._tools.servers is None else self._tools.servers.offers.resources()

    def _prompts(self) -> dict[str, tuple[ServerConnection, RemotePrompt]]:
        offered = () if self._tools.servers is None else self._tools.servers.offers.prompts()
        return {shown_name(tool_name(link.name, prompt.name)): (link, prompt) for link, prompt in offered}


def server_of(uri: str, offered: Mapping[str, Sequence[McpResource]]) -> str | None:
    """The first server that lists an address, else the first with a template that the address may be made from."""
    for server, resources in offered.items():
        if any(each.uri == uri for each in resources):
            return server
    for server, resources in offered.items():
        if any(each.is_template and may_be_made_from(each.uri, uri) for each in resources):
            return server
    return None


def may_be_made_from(template: str, uri: str) -> bool:
    """Whether the literal parts of a template stand in an address, in their order, the first and last at its ends."""
    first, *rest = EXPRESSION.split(template)
    if not rest or not first or not uri.startswith(first):
        return False
    *middle, last = rest
    at, end = len(first), len(uri) - len(last)
    for part in middle:
        found = uri.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end and uri.endswith(last)


def _prompt_definition(name: str, prompt: RemotePrompt) -> dict[str, Any]:
    arguments = [
        {"name": each.name, "description": each.description, "required": each.required} for each in prompt.arguments
    ]
    return {"name": name, "description": prompt.description, "arguments": arguments}


def _blob(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"mimeType": part.get("mimeType", "application/octet-stream"), "blob": part.get("data", "")}
