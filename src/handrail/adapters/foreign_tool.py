"""Tools of other frameworks as tools of handrail."""

import base64
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias, TypedDict

from pydantic import ValidationError

from handrail.conversation.blocks import Document, Json, ResultBlock, Text
from handrail.errors import ToolDefinitionError, ToolError
from handrail.mcp.content import MAX_FILE, file_block, image_block
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.function import from_process
from handrail.tools.output import Output
from handrail.tools.raw import RawTool
from handrail.tools.tool import PromptView, check_flags

Invoke: TypeAlias = Callable[[Json, ToolContext], Awaitable[Output]]
"""Calls the tool with checked values."""

BEHAVIOUR = frozenset({"name", "read_only", "concurrency_safe", "destructive", "access"})
"""Flags that are answers of methods; the others are members of Tool."""


class ForeignFlags(TypedDict, total=False):
    """How a tool of another framework behaves. Names and careful defaults are those of `@tool`."""

    name: str
    read_only: bool
    concurrency_safe: bool
    destructive: bool
    access: Callable[..., Access]
    subject: str
    interrupt: Literal["cancel", "block"] | None
    requires_user_interaction: bool
    timeout: float | None
    max_result_chars: int | None
    should_defer: bool
    always_load: bool


class ForeignTool(RawTool):
    """A tool of another framework. Without flags it runs alone, counts as a change, and is asked about."""

    def __init__(self, name: str, description: str, schema: object, invoke: Invoke, flags: ForeignFlags) -> None:
        if unknown := flags.keys() - ForeignFlags.__annotations__.keys():
            raise TypeError(
                f"{name}: {min(unknown)!r} is not a flag of tools. Use {', '.join(ForeignFlags.__annotations__)}."
            )
        check_flags(name, flags)
        super().__init__(flags.get("name") or name, schema)
        self.check_references()
        subject = flags.get("subject", "")
        if subject and subject not in self.input_schema.get("properties", ()):
            raise ToolDefinitionError(f"{name}: subject names {subject!r}, which is not an argument. Name one that is.")
        for member, value in flags.items():
            if member not in BEHAVIOUR:
                setattr(self, member, value)
        self._description = description
        self._invoke = invoke
        self._flags = flags

    def prompt(self, view: PromptView) -> str:
        return self._description

    def is_read_only(self, args: Json) -> bool:
        return self._flags.get("read_only", False)

    def is_concurrency_safe(self, args: Json) -> bool:
        return self._flags.get("concurrency_safe", False)

    def is_destructive(self, args: Json) -> bool:
        return self._flags.get("destructive", False)

    def access(self, args: Json, run: RunContext) -> Access:
        if declare := self._flags.get("access"):
            return from_process(declare(**args))
        return super().access(args, run)

    async def call(self, args: Json, ctx: ToolContext) -> Output:
        return await self._invoke(args, ctx)


def input_problem(name: str, error: ValidationError) -> ToolError:
    """What the framework's own check says of an input that fits the schema."""
    problems = [f"{'.'.join(map(str, each['loc'])) or 'input'}: {each['msg']}" for each in error.errors()]
    return ToolError(f"The input for {name} is wrong. {'; '.join(problems)}.")


def media_block(data: str, kind: str) -> ResultBlock:
    """Bytes in base64 as a model reads them: an image, a PDF, a text, or else a note about them."""
    if kind.startswith("image/"):
        return image_block(data, kind, _refuse_file)
    try:
        content = base64.b64decode(data, validate=True) if len(data) <= MAX_FILE else b"\xff"
        if kind == "application/pdf" and content.startswith(b"%PDF"):
            return Document(data, kind)
        return Text(content.decode())
    except ValueError:
        return file_block(data, kind, "file", _refuse_file)


def _refuse_file(_data: bytes, _kind: str) -> str:
    raise OSError("models do not read it")
