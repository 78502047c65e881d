"""A real MCP server on standard input and output, made with the reference library, for tests to start."""

import os
import sys
import time

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations

server = MCPServer("reference")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, title="Add numbers"))
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
def fail(text: str) -> str:
    """Fails."""
    raise ValueError(text)


@server.tool()
async def count(upto: int, ctx: Context) -> str:
    """Counts, and tells how far it is."""
    for number in range(1, upto + 1):
        await ctx.report_progress(number, upto, f"at {number}")
    return "done"


@server.tool()
def leave() -> str:
    """The server ends in the middle of a call."""
    sys.stderr.write("I have to go\n")
    sys.stderr.flush()
    os._exit(7)


@server.tool()
def wait() -> str:
    """Takes an hour."""
    time.sleep(3600)
    return "at last"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def note(text: str) -> CallToolResult:
    """Answers with more than content."""
    content = TextContent(type="text", text=text)
    return CallToolResult(content=[content], structured_content={"noted": text}, _meta={"trace": "t1"})


server.run("stdio")
