"""pydantic-ai: tools of handrail as its, and its as tools of handrail."""

import base64
from collections.abc import Callable
from functools import partial
from typing import Any, Unpack

from pydantic import ValidationError
from pydantic_core import SchemaValidator, core_schema

from handrail.adapters.foreign_tool import ForeignFlags, ForeignTool, input_problem, media_block
from handrail.adapters.import_problem import import_problem
from handrail.adapters.tool_session import OfferedTool, ToolSession
from handrail.conversation.blocks import Document, Image, Json, ResultBlock, Text, ToolReference
from handrail.errors import ToolDefinitionError, ToolError
from handrail.tools.context import ToolContext
from handrail.tools.function import as_output
from handrail.tools.output import Output, json_text

try:
    from pydantic_ai import BinaryContent, ModelRetry, RunUsage, ToolFailed, ToolReturn
    from pydantic_ai import RunContext as PydanticContext
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai.models.test import TestModel
except ImportError as error:
    raise import_problem("pydantic-ai-slim>=2.66", error) from error

ANY_OBJECT = SchemaValidator(core_schema.dict_schema(keys_schema=core_schema.str_schema()))


def pydantic_ai_tools(session: ToolSession) -> list[PydanticTool[Any]]:
    """The tools of a session, for pydantic-ai. A call that is refused or fails is a failed tool return."""
    return [_pydantic_tool(session, offered) for offered in session.definitions]


def from_pydantic_ai(
    tool: PydanticTool[Any] | Callable[..., Any], *, deps: Any = None, **flags: Unpack[ForeignFlags]
) -> ForeignTool:
    """
    A tool of pydantic-ai as a tool of handrail: asked about, and run alone, unless `flags` say otherwise.

    A function that takes a RunContext finds `deps` in it, and no run. A tool that requires approval there always asks
    here, whatever the rules say.

    Raises:
        ToolDefinitionError: its name or schema cannot be used, or only a run of pydantic-ai could call it.
    """
    if not callable(tool) and not isinstance(tool, PydanticTool):
        raise ToolDefinitionError(f"{tool!r} is neither a function nor a Tool of pydantic-ai. Give one of these.")
    given = tool if isinstance(tool, PydanticTool) else PydanticTool(tool)
    if given.prepare is not None or given.args_validator is not None:
        raise ToolDefinitionError(
            f"{given.name!r} has a prepare function or an args_validator, which only a run of pydantic-ai calls. "
            "Give a tool without them."
        )
    defaults = ForeignFlags(requires_user_interaction=given.requires_approval, timeout=given.timeout)
    schema = given.function_schema

    async def invoke(values: Json, ctx: ToolContext) -> Output:
        run = PydanticContext(
            deps=deps, model=TestModel(), usage=RunUsage(), tool_name=given.name, tool_call_id=ctx.use.id
        )
        try:
            return _output(await schema.call(schema.validator.validate_json(json_text(values)), run))
        except (ModelRetry, ToolFailed) as error:
            raise ToolError(error.message) from error
        except ValidationError as error:
            raise input_problem(given.name, error) from error

    return ForeignTool(given.name, given.description or "", schema.json_schema, invoke, {**defaults, **flags})


def _pydantic_tool(session: ToolSession, offered: OfferedTool) -> PydanticTool[Any]:
    call = partial(_call, session, offered.name)
    made = PydanticTool.from_schema(call, offered.name, offered.description, offered.schema, takes_ctx=True)
    made.function_schema.validator = ANY_OBJECT  # anything else would end the run; the schema is checked by the session
    return made


async def _call(session: ToolSession, name: str, ctx: PydanticContext[Any], /, **values: Any) -> Any:
    result = (await session.call(name, values, ctx.tool_call_id or "")).result
    if result.is_error:
        raise ToolFailed(result.text)
    if all(isinstance(block, Text) for block in result.content):
        return result.text
    return [_part(block) for block in result.content]


def _part(block: ResultBlock) -> Any:
    match block:
        case Text(text):
            return text
        case Image(data, kind) | Document(data, kind):
            return BinaryContent(base64.b64decode(data), media_type=kind)
        case ToolReference(name):
            return name


def _output(value: Any) -> Output:
    if isinstance(value, ToolReturn):
        value = value.return_value
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, BinaryContent) for part in parts):
        return Output(blocks=tuple(map(_block, parts)))
    return as_output(value)


def _block(part: Any) -> ResultBlock:
    if isinstance(part, BinaryContent):
        return media_block(base64.b64encode(part.data).decode(), part.media_type)
    return Text(part if isinstance(part, str) else json_text(part))
