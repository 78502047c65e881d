"""
A real MCP server made with the reference library, for tests to start.

    reference_server.py          on standard input and output
    reference_server.py http     on a port of its own, which it prints: /mcp and /sse
"""

import os
import socket
import sys
import time

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    CallToolResult,
    Completion,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel

server = MCPServer("reference", instructions="Ask kindly.")


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


class Wish(BaseModel):
    """What the person is asked for."""

    colour: str = "blue"


@server.tool()
async def paint(ctx: Context) -> str | InputRequiredResult:
    """Asks the person for a colour."""
    if ctx.session.protocol_version == "2026-07-28":
        given = (ctx.input_responses or {}).get("colour")
        if given is None:
            asked = ElicitRequestFormParams(message="Which colour?", requested_schema=Wish.model_json_schema())
            return InputRequiredResult(input_requests={"colour": ElicitRequest(params=asked)}, request_state="begun")
        assert isinstance(given, ElicitResult)
        assert ctx.request_state == "begun"
        return f"{given.action} {(given.content or {}).get('colour', '')}".strip()
    answer = await ctx.elicit("Which colour?", Wish)
    return f"{answer.action} {answer.data.colour if answer.action == 'accept' else ''}".strip()


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool."""

    def grown() -> str:
        """It was not there before."""
        return "grown"

    server.add_tool(grown)
    await ctx.notify_tools_changed()
    if ctx.session.protocol_version != "2026-07-28":
        await ctx.session.send_tool_list_changed()
    return "more"


@server.tool()
async def trace(ctx: Context) -> str:
    """The trace that the call belongs to."""
    meta = ctx.request_context.meta
    return str((meta or {}).get("traceparent", "none"))


@server.tool()
async def rewrite(ctx: Context) -> str:
    """Changes what was noted today."""
    await ctx.notify_resource_updated("notes://today")
    return "rewritten"


@server.prompt()
def review(language: str) -> list[UserMessage]:
    """Looks at code."""
    return [UserMessage(f"Review this {language} code.")]


@server.resource("notes://today", mime_type="text/plain")
def today() -> str:
    """What was noted today."""
    return "sunny"


@server.resource("notes://day/{name}", mime_type="text/plain")
def day(name: str) -> str:
    """What was noted on a day."""
    return f"rain on {name}"


@server.resource("notes://sound", mime_type="audio/wav")
def sound() -> bytes:
    """A sound."""
    return b"RIFFsound"


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
async def complete(_reference: object, argument: object, _context: object) -> Completion:
    known = ("python", "perl", "rust")
    return Completion(values=[word for word in known if word.startswith(argument.value)])  # type: ignore[attr-defined]


def serve_http() -> None:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app()
    app.router.routes.extend(server.sse_app().routes)
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).run(sockets=[listener])


if sys.argv[1:] == ["http"]:
    serve_http()
else:
    server.run("stdio")
