"""The tools that list and read the resources of MCP servers; they exist when a server has some."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from pydantic import Field

from handrail.conversation.blocks import ResultBlock
from handrail.errors import McpError, ToolError
from handrail.mcp.known_places import ServerPlace, named_access
from handrail.tools.access import Access
from handrail.tools.context import McpResource, RunContext, ToolContext
from handrail.tools.mcp_names import server_name
from handrail.tools.output import Output, json_text
from handrail.tools.permission import NO_OPINION, Check, Refuse, Verdict
from handrail.tools.schema import Input
from handrail.tools.tool import PromptView, Tool

MAX_LISTED = 500


class ResourceServers(Protocol):
    """The servers of a session, as far as their resources are concerned."""

    def resources(self) -> Mapping[str, Sequence[McpResource]]:
        """What each connected server offers, by its name."""
        ...

    async def read(self, server: str, uri: str) -> tuple[ResultBlock, ...]:
        """The contents of a resource; raises HandrailError."""
        ...

    def place(self, server: str) -> ServerPlace:
        """Where a server is; nowhere if there is none of that name."""
        ...


class ListResourcesInput(Input):
    server: str | None = Field(default=None, description="The name of one server; all if left out.")


class ReadResourceInput(Input):
    server: str = Field(description="The name of the server.")
    uri: str = Field(description="The address of the resource.")


class ListMcpResourcesTool(Tool[ListResourcesInput]):
    """The options of a run say which servers its agent may see; `servers` are all that there are."""

    name = "ListMcpResourcesTool"
    input_model = ListResourcesInput
    search_hint = "what servers offer to look at"
    should_defer = True

    def __init__(self, servers: ResourceServers) -> None:
        self._servers = servers

    def prompt(self, view: PromptView) -> str:
        return (
            "Lists the resources that MCP servers offer to read, as JSON: server, uri, name, description, mimeType. "
            "Fill in the parts in braces of a uriTemplate to get a uri."
        )

    def is_read_only(self, args: ListResourcesInput) -> bool:
        return True

    def is_concurrency_safe(self, args: ListResourcesInput) -> bool:
        return True

    def access(self, args: ListResourcesInput, run: RunContext) -> Access:
        return Access.of()

    async def call(self, args: ListResourcesInput, ctx: ToolContext) -> Output:
        known = ctx.options.mcp_resources()
        if args.server is not None and args.server not in known:
            raise ToolError(_unknown_server(args.server, known))
        listed = [
            {"server": name, **_resource_json(each)}
            for name, resources in known.items()
            if args.server in (None, name)
            for each in resources
        ]
        more = f"\n[{len(listed) - MAX_LISTED:,} more are left out]" if len(listed) > MAX_LISTED else ""
        return Output(text=json_text(listed[:MAX_LISTED]) + more, data=listed[:MAX_LISTED])


class ReadMcpResourceTool(Tool[ReadResourceInput]):
    """What the server has listed is read without a question; another address would carry words of the model to it."""

    name = "ReadMcpResourceTool"
    input_model = ReadResourceInput
    search_hint = "open what servers offer by its address"
    subject = "uri"
    should_defer = True

    def __init__(self, servers: ResourceServers) -> None:
        self._servers = servers

    def prompt(self, view: PromptView) -> str:
        return "Reads a resource of an MCP server by the server's name and the resource's uri."

    def is_read_only(self, args: ReadResourceInput) -> bool:
        return True

    def is_concurrency_safe(self, args: ReadResourceInput) -> bool:
        return True

    def access(self, args: ReadResourceInput, run: RunContext) -> Access:
        return named_access({"uri": args.uri}, {}, self._servers.place(args.server), str(run.cwd), Access.of())

    async def validate(self, args: ReadResourceInput, ctx: ToolContext) -> Refuse | None:
        known = ctx.options.mcp_resources()
        return None if args.server in known else Refuse(_unknown_server(args.server, known))

    async def check_permission(self, args: ReadResourceInput, ctx: ToolContext) -> Check:
        whole = f"mcp__{server_name(args.server)}"
        asked = {rule for rules in ctx.permissions.ask_rules.values() for rule in rules}
        if found := asked.intersection((whole, f"{whole}__*", "mcp__*")):
            return Check(Verdict.ASK, f"the rule {min(found)} is about the server {args.server!r}")
        listed = ctx.options.mcp_resources().get(args.server, ())
        if any(each.uri == args.uri and not each.is_template for each in listed):
            return NO_OPINION
        return Check(Verdict.ASK, f"the server {args.server!r} has not listed this address")

    def summary(self, args: ReadResourceInput) -> str:
        return f"Read {args.uri} of {args.server}"

    async def call(self, args: ReadResourceInput, ctx: ToolContext) -> Output:
        try:
            return Output(blocks=await self._servers.read(args.server, args.uri))
        except McpError as error:
            raise ToolError(str(error)) from error


def _unknown_server(server: str, known: Iterable[str]) -> str:
    return f"There is no connected MCP server {server!r}. Known: {', '.join(known) or 'none'}."


class JoinedServers:
    """The servers of several sessions or agents as one; of two of one name the first counts."""

    def __init__(self, *parts: ResourceServers) -> None:
        self._parts = parts

    def resources(self) -> Mapping[str, Sequence[McpResource]]:
        """What each connected server offers, by its name."""
        return {name: each for part in reversed(self._parts) for name, each in part.resources().items()}

    async def read(self, server: str, uri: str) -> tuple[ResultBlock, ...]:
        """The contents of a resource; raises HandrailError."""
        return await self._part(server).read(server, uri)

    def place(self, server: str) -> ServerPlace:
        """Where a server is."""
        return self._part(server).place(server)

    def _part(self, server: str) -> ResourceServers:
        return next((part for part in self._parts if server in part.resources()), self._parts[0])


def _resource_json(each: McpResource) -> dict[str, str]:
    address = "uriTemplate" if each.is_template else "uri"
    shown = {address: each.uri, "name": each.name, "description": each.description, "mimeType": each.mime_type}
    return {key: text for key, text in shown.items() if text}


def resource_tools(
    servers: ResourceServers,
) -> Callable[[], tuple[Tool[ListResourcesInput] | Tool[ReadResourceInput], ...]]:
    """Gives the two tools, always the same, as soon as a server has resources; none before."""
    tools = (ListMcpResourcesTool(servers), ReadMcpResourceTool(servers))
    offered = False

    def current() -> tuple[Tool[ListResourcesInput] | Tool[ReadResourceInput], ...]:
        nonlocal offered
        offered = offered or any(servers.resources().values())
        return tools if offered else ()

    return current
