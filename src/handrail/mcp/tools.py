"""Wraps tools of MCP servers as Tools. Annotations of a server may make a tool faster, never more allowed."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeGuard

import jsonschema_rs

from handrail.conversation.blocks import Json
from handrail.errors import McpError, ToolDefinitionError, ToolError
from handrail.mcp.content import RESULT_CHARS, output_of
from handrail.mcp.known_places import ServerPlace, named_access
from handrail.mcp.messages import shown_text
from handrail.mcp.offers import RemoteTool
from handrail.mcp.parameter_headers import parameter_headers
from handrail.mcp.peer import OnProgress
from handrail.tools.access import Access
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.mcp_names import tool_name
from handrail.tools.output import Output
from handrail.tools.raw import RawTool
from handrail.tools.tool import McpInfo, PromptView

MAX_DESCRIPTION = 2048
DIALECTS = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#")
KNOWN_DIALECTS = ("https://json-schema.org/", "http://json-schema.org/")
MAX_TITLE = 100
MAX_NEWS = 1_000
MAX_RESULT = 500_000


class ToolCaller(Protocol):
    """Calls the tools of one server."""

    @property
    def name(self) -> str:
        """The name of the server in its configuration."""
        ...

    @property
    def place(self) -> ServerPlace:
        """Where the server is."""
        ...

    async def call(self, tool: str, given: Mapping[str, Any], call_id: str, on_progress: OnProgress) -> Output:
        """Call a tool; raises McpError."""
        ...


class McpTool(RawTool):
    """One tool of one server."""

    def __init__(self, server: ToolCaller, remote: RemoteTool, result_chars: int = RESULT_CHARS) -> None:
        super().__init__(tool_name(server.name, remote.name), usable_schema(remote.schema))
        self.mcp = McpInfo(server.name, remote.name)
        self.remote = remote
        self._server = server
        self._description = shown_text(remote.description)[:MAX_DESCRIPTION]
        self._notes = remote.annotations
        self.always_load = remote.meta.get("anthropic/alwaysLoad") is True
        self.requires_user_interaction = remote.meta.get("anthropic/requiresUserInteraction") is True
        limit = remote.meta.get("anthropic/maxResultSizeChars")
        self.max_result_chars = min(limit, MAX_RESULT) if isinstance(limit, int) and limit > 0 else result_chars
        hint = remote.meta.get("anthropic/searchHint")
        self.search_hint = hint[:200] if isinstance(hint, str) else ""

    def prompt(self, view: PromptView) -> str:
        return self._description

    def display_name(self, args: Json | None = None) -> str:
        title = self.remote.title or self._notes.get("title")
        if not isinstance(title, str) or not title:
            return self.name
        return f"{shown_text(self._server.name)}: {shown_text(title)[:MAX_TITLE]}"  # a title could imitate another tool

    def is_read_only(self, args: Json) -> bool:
        return self._notes.get("readOnlyHint") is True

    def is_concurrency_safe(self, args: Json) -> bool:
        return self._notes.get("readOnlyHint") is True

    def is_destructive(self, args: Json) -> bool:
        return not self.is_read_only(args) and self._notes.get("destructiveHint") is not False

    def access(self, args: Json, run: RunContext) -> Access:
        """Nothing is declared, because only the server knows; deny and ask rules see the places that are known."""
        undeclared = super().access(args, run)
        return named_access(args, self.remote.schema, self._server.place, str(run.cwd), undeclared)

    @property
    def annotations(self) -> dict[str, bool]:
        """The annotations of the server, as host programs expect them."""
        names = {"readOnlyHint": "readOnly", "destructiveHint": "destructive", "openWorldHint": "openWorld"}
        return {short: self._notes[name] for name, short in names.items() if isinstance(self._notes.get(name), bool)}

    @cached_property
    def output_schema(self) -> Json | None:
        return self.remote.output_schema if isinstance(self.remote.output_schema, Mapping) else None

    def output_from_data(self, data: Json) -> Output:
        return output_of(data, self._server.name)

    async def call(self, args: Json, ctx: ToolContext) -> Output:
        def on_progress(notification: Mapping[str, Any]) -> None:
            ctx.progress(progress_of(notification))

        assert self.mcp is not None
        try:
            return await self._server.call(self.mcp.tool, args, ctx.use.id, on_progress)
        except McpError as error:
            raise ToolError(str(error)) from error


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The input schema with its type, and without a `$schema` that is none of JSON Schema: it is never fetched."""
    usable = dict(schema) if schema.get("type") else {**schema, "type": "object"}
    if not str(usable.get("$schema", KNOWN_DIALECTS[0])).startswith(KNOWN_DIALECTS):
        del usable["$schema"]
    return usable


def progress_of(notification: Mapping[str, Any]) -> Progress:
    """The progress in a notification."""
    text, done, total = notification.get("message"), notification.get("progress"), notification.get("total")
    try:
        share = float(done) / float(total) if _number(done) and _number(total) and total > 0 else None
    except OverflowError:
        share = None
    return Progress(shown_text(text)[:MAX_NEWS] if isinstance(text, str) else "", share)


def _number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def tools_of(
    server: ToolCaller, listed: Iterable[RemoteTool], known: Sequence[McpTool] = (), result_chars: int = RESULT_CHARS
) -> tuple[tuple[McpTool, ...], tuple[str, ...]]:
    """
    The tools of a server that can be offered, and what is wrong with the others; `known` ones stay if unchanged.

    `result_chars` is the most that a result may have before the whole goes to disk.
    """
    before = {tool.name: tool for tool in known}
    tools: list[McpTool] = []
    problems: list[str] = []
    for name, remotes in by_name(server.name, listed).items():
        if len(remotes) > 1:  # what is allowed for the one would be allowed for the other
            called = ", ".join(repr(remote.name) for remote in remotes)
            problems.append(f"{len(remotes)} of its tools would have the name {name!r} ({called}), so none is offered.")
        elif name in before and before[name].remote == remotes[0]:
            tools.append(before[name])
        else:
            try:
                tools.append(_tool(server, remotes[0], result_chars))
            except (ToolDefinitionError, ValueError) as error:
                problems.append(str(error))
    return tuple(tools), tuple(problems)


def _tool(server: ToolCaller, remote: RemoteTool, result_chars: int) -> McpTool:
    tool = McpTool(server, remote, result_chars)
    if not is_schema(tool.schema_json):
        raise ToolDefinitionError(f"The input schema of {tool.name!r} is not a JSON Schema.")
    if b'Ref"' in tool.schema_json or b'$ref"' in tool.schema_json:  # no call of it could be checked
        tool.check_references()
    try:
        parameter_headers(remote.schema)
    except ValueError as error:
        raise ToolDefinitionError(f"The input schema of {tool.name!r} cannot be used: {error}.") from error
    return tool


def by_name(server: str, listed: Iterable[RemoteTool]) -> dict[str, list[RemoteTool]]:
    """The tools of a server by the names that models would see."""
    found: dict[str, list[RemoteTool]] = {}
    for remote in listed:
        found.setdefault(tool_name(server, remote.name), []).append(remote)
    return found


def is_schema(written: bytes) -> bool:
    """Whether models accept this input schema. Its `$schema` is not resolved, because it could point anywhere."""
    schema = {key: value for key, value in json.loads(written).items() if key != "$schema"}
    return any(jsonschema_rs.meta.is_valid({"$schema": dialect, **schema}) for dialect in DIALECTS)
