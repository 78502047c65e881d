"""A tool as clients see it: its schemas, and annotations that its declaration implies."""

import json
from typing import Any

from handrail.gateway.output_schema import object_schema
from handrail.mcp.tools import McpTool
from handrail.tools.flags import whatever_the_input
from handrail.tools.pool import AnyTool
from handrail.tools.tool import PLAIN_VIEW, PromptView

PREFIX = "mcp__"


def tool_definition(tool: AnyTool, view: PromptView = PLAIN_VIEW) -> dict[str, Any]:
    """One entry of `tools/list`."""
    listed: dict[str, Any] = {
        "name": shown_name(tool.name),
        "description": tool.prompt(view),
        "inputSchema": {"type": "object", **tool.remote.schema}
        if isinstance(tool, McpTool)
        else json.loads(tool.schema_json),
        "annotations": annotations(tool),
    }
    title = tool.display_name()
    if title != tool.name:
        listed["title"] = title
    if tool.output_schema is not None:
        listed["outputSchema"] = dict(object_schema(tool.output_schema))
    if isinstance(tool, McpTool) and tool.remote.meta:
        listed["_meta"] = dict(tool.remote.meta)
    return listed


def input_schema(tool: AnyTool) -> dict[str, Any]:
    """The schema as its server has written it, else as models get it."""
    if isinstance(tool, McpTool):
        return {"type": "object", **tool.remote.schema}
    found: dict[str, Any] = json.loads(tool.schema_json)
    return found


def shown_name(name: str) -> str:
    """The name that clients see: without `mcp__`, which many of them put before every name themselves."""
    return name.removeprefix(PREFIX)


def annotations(tool: AnyTool) -> dict[str, bool]:
    """The hints of a tool. What depends on the input is said as if the worst came."""
    if isinstance(tool, McpTool):
        given = tool.remote.annotations
        names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        return {name: given[name] for name in names if isinstance(given.get(name), bool)}
    if whatever_the_input(tool.is_read_only) is True:
        return {"readOnlyHint": True}
    return {"readOnlyHint": False, "destructiveHint": whatever_the_input(tool.is_destructive) is not False}
