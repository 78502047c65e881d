"""The OpenAI Agents SDK: tools of handrail as its function tools, and its function tools as tools of handrail."""

import re
from functools import partial
from typing import Any, Unpack

from handrail.adapters.foreign_tool import ForeignFlags, ForeignTool, media_block
from handrail.adapters.import_problem import import_problem
from handrail.adapters.tool_session import ToolSession
from handrail.conversation.blocks import Document, Image, Json, ResultBlock, Text, ToolReference
from handrail.errors import ToolDefinitionError
from handrail.providers.wire import arguments
from handrail.tools.context import ToolContext
from handrail.tools.function import as_output
from handrail.tools.output import Output, json_text

try:
    from agents import FunctionTool as SdkTool
    from agents import ToolOutputFileContent, ToolOutputImage, ToolOutputText
    from agents.tool_context import ToolContext as SdkContext
except ImportError as error:
    raise import_problem("openai-agents>=0.24", error) from error

DATA_URL = re.compile(r"data:(?P<kind>[\w./+-]+);base64,(?P<data>.+)")


def openai_agents_tools(session: ToolSession) -> list[SdkTool]:
    """The tools of a session, for the SDK. A call that is refused or fails returns the reason as text."""
    return [
        SdkTool(each.name, each.description, each.schema, partial(_call, session, each.name), strict_json_schema=False)
        for each in session.definitions
    ]


def from_openai_agents(tool: SdkTool, *, context: Any = None, **flags: Unpack[ForeignFlags]) -> ForeignTool:
    """
    A function tool of the SDK as a tool of handrail: asked about, and run alone, unless `flags` say otherwise.

    A function that takes a context finds `context` in it. A tool that needs approval there always asks here, whatever
    the rules say. Make it with `failure_error_function=None`, so that a failure is known as one.

    Raises:
        ToolDefinitionError: its name or schema cannot be used, or only a run of the SDK could call it.
    """
    if not isinstance(tool, SdkTool):
        raise ToolDefinitionError(f"{tool!r} is not a function tool of the SDK. Put @function_tool above a function.")
    if tool.tool_input_guardrails or tool.tool_output_guardrails or tool.is_enabled is not True:
        raise ToolDefinitionError(
            f"{tool.name!r} has guardrails or a condition (is_enabled), which only a run of the SDK checks. "
            "Give a tool without them."
        )
    defaults = ForeignFlags(requires_user_interaction=bool(tool.needs_approval), timeout=tool.timeout_seconds)

    async def invoke(values: Json, ctx: ToolContext) -> Output:
        text = json_text(values)
        run = SdkContext(context, tool_name=tool.name, tool_call_id=ctx.use.id, tool_arguments=text)
        return _output(await tool.on_invoke_tool(run, text))

    return ForeignTool(tool.name, tool.description, tool.params_json_schema, invoke, {**defaults, **flags})


async def _call(session: ToolSession, name: str, ctx: SdkContext[Any], given: str) -> Any:
    values = arguments(given)
    if isinstance(values, str):
        return f"{name} was not run: {values}"
    result = (await session.call(name, values, ctx.tool_call_id)).result
    if result.is_error or all(isinstance(block, Text) for block in result.content):
        return result.text
    return [_part(block) for block in result.content]


def _part(block: ResultBlock) -> Any:
    match block:
        case Text(text):
            return ToolOutputText(text=text)
        case Image(data, kind):
            return ToolOutputImage(image_url=f"data:{kind};base64,{data}")
        case Document(data, kind, title):
            return ToolOutputFileContent(file_data=f"data:{kind};base64,{data}", filename=title or "document")
        case ToolReference(name):
            return ToolOutputText(text=name)


def _output(value: Any) -> Output:
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, ToolOutputText | ToolOutputImage | ToolOutputFileContent) for part in parts):
        return Output(blocks=tuple(map(_block, parts)))
    return as_output(value)


def _block(part: Any) -> ResultBlock:
    match part:
        case str():
            return Text(part)
        case ToolOutputText():
            return Text(part.text)
        case ToolOutputImage() if found := DATA_URL.fullmatch(part.image_url or ""):
            return media_block(found["data"], found["kind"])
        case ToolOutputFileContent() if found := DATA_URL.fullmatch(part.file_data or ""):
            return media_block(found["data"], found["kind"])
        case _:
            return Text(json_text(part))
