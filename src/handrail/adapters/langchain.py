"""LangChain and LangGraph: tools of handrail as theirs, and theirs as tools of handrail."""

from collections.abc import Container, Mapping
from typing import Any, Unpack

from pydantic import BaseModel, PrivateAttr, ValidationError

from handrail.adapters.foreign_tool import ForeignFlags, ForeignTool, input_problem, media_block
from handrail.adapters.import_problem import import_problem
from handrail.adapters.tool_session import OfferedTool, ToolSession
from handrail.conversation.blocks import Document, Image, Json, ResultBlock, Text, ToolReference
from handrail.errors import ToolDefinitionError, ToolError
from handrail.tools.context import ToolContext
from handrail.tools.outcome import Outcome
from handrail.tools.output import Output, json_text

try:
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import BaseTool, InjectedToolCallId, ToolException
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise import_problem("langchain-core>=1.7", error) from error


def langchain_tools(session: ToolSession) -> list[BaseTool]:
    """The tools of a session, for LangChain and LangGraph. A call that is refused or fails is a tool error."""
    return [GovernedTool(session, offered) for offered in session.definitions]


def from_langchain(tool: BaseTool, **flags: Unpack[ForeignFlags]) -> ForeignTool:
    """
    A LangChain tool as a tool of handrail: asked about, and run alone, unless `flags` say otherwise.

    Raises:
        ToolDefinitionError: its name or schema cannot be used, or only a run of LangGraph could call it.
    """
    if not isinstance(tool, BaseTool):
        raise ToolDefinitionError(f"{tool!r} is not a LangChain tool. Put @tool of langchain_core above a function.")
    about = convert_to_openai_tool(tool)["function"]
    if argument := _graph_argument(tool, about["parameters"]["properties"]):
        raise ToolDefinitionError(
            f"{tool.name!r} needs {argument!r} of a run of LangGraph. Give a tool that takes what the model sends."
        )

    async def invoke(values: Json, ctx: ToolContext) -> Output:
        try:
            message = await tool.ainvoke(
                {"type": "tool_call", "id": ctx.use.id, "name": tool.name, "args": dict(values)}
            )
        except ToolException as error:
            raise ToolError(str(error)) from error
        except ValidationError as error:
            raise input_problem(tool.name, error) from error
        if not isinstance(message, ToolMessage):
            return Output(data=message)
        return _output(message.content, is_error=message.status == "error")

    return ForeignTool(tool.name, about["description"], about["parameters"], invoke, flags)


def _graph_argument(tool: BaseTool, arguments: Container[str]) -> str:
    """The name of an argument that a run of LangGraph gives, and not the model; the id of a call is known here too."""
    schema = tool.get_input_schema()
    if isinstance(tool.args_schema, Mapping) or not issubclass(schema, BaseModel):
        return ""
    for name, field in schema.model_fields.items():
        is_call_id = any(each is InjectedToolCallId or isinstance(each, InjectedToolCallId) for each in field.metadata)
        if field.is_required() and not is_call_id and name not in arguments and field.alias not in arguments:
            return str(name)
    return ""


class GovernedTool(BaseTool):  # type: ignore[misc]  # mypy does not follow the framework
    """One tool of a ToolSession."""

    handle_tool_error: bool = True
    _session: ToolSession = PrivateAttr()

    def __init__(self, session: ToolSession, offered: OfferedTool) -> None:
        super().__init__(name=offered.name, description=offered.description, args_schema=offered.schema)
        self._session = session

    def _run(self, /, **values: Any) -> Any:
        return _content(self._session.call_sync(self.name, values))

    async def _arun(self, /, **values: Any) -> Any:
        return _content(await self._session.call(self.name, values))


def _content(outcome: Outcome) -> Any:
    result = outcome.result
    if result.is_error:
        raise ToolException(result.text)
    if all(isinstance(block, Text) for block in result.content):
        return result.text
    return [_part(block) for block in result.content]


def _part(block: ResultBlock) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(data, kind):
            return {"type": "image", "base64": data, "mime_type": kind}
        case Document(data, kind, title):
            return {"type": "file", "base64": data, "mime_type": kind, "filename": title}
        case ToolReference(name):
            return {"type": "text", "text": name}


def _output(content: str | list[str | dict[str, Any]], *, is_error: bool) -> Output:
    if isinstance(content, str):
        return Output(text=content, is_error=is_error)
    return Output(blocks=tuple(map(_block, content)), is_error=is_error)


def _block(part: str | dict[str, Any]) -> ResultBlock:
    match part:
        case str():
            return Text(part)
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"base64": str(data), "mime_type": str(kind)}:
            return media_block(data, kind)
        case _:
            return Text(json_text(part))
