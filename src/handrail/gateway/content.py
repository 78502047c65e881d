"""What clients get: blocks, texts and bytes as the content of MCP, without secrets."""

import base64
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from handrail.conversation.blocks import Document, Image, ResultBlock, Text, ToolReference
from handrail.conversation.redact import Redactor
from handrail.errors import HandrailError
from handrail.gateway.listing import shown_name
from handrail.gateway.output_schema import structured_value
from handrail.mcp.content import no_files, output_of
from handrail.tools.outcome import Outcome, Status
from handrail.tools.output import Output, json_text
from handrail.tools.pool import AnyTool
from handrail.tools.tool import DEFAULT_RESULT_CHARS

BYTES = frozenset({"data", "blob"})
"""The names of values that are base64, in which nothing is looked for."""
ERROR_TAGS = ("<tool_use_error>", "</tool_use_error>")


def text_part(text: str) -> dict[str, Any]:
    """A text."""
    return {"type": "text", "text": text}


def image_part(data: bytes, mime_type: str) -> dict[str, Any]:
    """A picture."""
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": mime_type}


def audio_part(data: bytes, mime_type: str) -> dict[str, Any]:
    """A sound."""
    return {"type": "audio", "data": base64.b64encode(data).decode(), "mimeType": mime_type}


def resource_part(uri: str, content: str | bytes, mime_type: str = "") -> dict[str, Any]:
    """A resource with its content."""
    return {"type": "resource", "resource": resource_content(uri, content, mime_type)}


def mcp_output(*parts: str | Mapping[str, Any]) -> Output:
    """The output of a tool that returns any content of MCP: texts, and what the functions above make."""
    content = [text_part(part) if isinstance(part, str) else dict(part) for part in parts]
    return output_of({"content": content}, "this server", no_files)


def resource_content(uri: str, content: str | bytes, mime_type: str) -> dict[str, Any]:
    """The content of a resource."""
    if isinstance(content, str):
        return {"uri": uri, "mimeType": mime_type or "text/plain", "text": content}
    kind = mime_type or "application/octet-stream"
    return {"uri": uri, "mimeType": kind, "blob": base64.b64encode(content).decode()}


def block_part(block: ResultBlock) -> dict[str, Any]:
    """A block of a result as a part of content."""
    match block:
        case Text(text):
            return text_part(text)
        case Image(data, kind):
            return {"type": "image", "data": data, "mimeType": kind}
        case Document(data, kind, title):
            return {"type": "resource", "resource": {"uri": f"document:{title}", "mimeType": kind, "blob": data}}
        case ToolReference(name):
            return text_part(f"{shown_name(name)} can be called from now on; it is in the list of tools.")


def call_result(outcome: Outcome, tool: AnyTool | None, redactor: Redactor) -> dict[str, Any]:
    """What a client gets for a call, in any case: its content, or why there is none."""
    output = outcome.output
    failed = outcome.result.is_error
    content = [block_part(block) for block in outcome.result.content]
    meta: dict[str, Any] = {}
    structured: Any = None
    if output is not None and tool is not None and not failed:
        whole = tool.result_blocks(output)
        if whole == outcome.result.content and (own := _own_content(output)) is not None:
            content = own
        structured = _structured_content(tool, output)
        if structured is not None and len(json_text(structured)) > (tool.max_result_chars or DEFAULT_RESULT_CHARS):
            failed, structured = True, None  # without it the result would not fit the schema that was promised
        if output.mcp is not None:
            meta = dict(output.mcp.meta)
    if outcome.status is not Status.OK:
        meta["handrail/outcome"] = {"status": outcome.status.value, "cause": outcome.cause.value}
    result: dict[str, Any] = {"content": _plain_errors(content) if failed else content, "isError": failed}
    if structured is not None:
        result["structuredContent"] = structured
    if meta:
        result["_meta"] = meta
    clean: dict[str, Any] = redact(result, redactor)
    return clean


def _own_content(output: Output) -> list[Any] | None:
    """The content as an MCP server, or a tool of the program, has written it."""
    if output.mcp is None or not isinstance(output.data, Mapping):
        return None
    found = output.data.get("content")
    return found if isinstance(found, list) and found else None


def _structured_content(tool: AnyTool, output: Output) -> Any:
    if output.mcp is not None:
        return output.mcp.structured_content
    if tool.output_schema is None or output.data is None:
        return None
    return structured_value(tool.output_schema, to_jsonable_python(output.data, fallback=str))


def _plain_errors(content: list[Any]) -> list[Any]:
    return [
        {**part, "text": part["text"].replace(ERROR_TAGS[0], "").replace(ERROR_TAGS[1], "")}
        if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        else part
        for part in content
    ]


def redact(value: Any, redactor: Redactor, name: str = "") -> Any:
    """The value without secrets; base64 stays as it is."""
    match value:
        case str():
            return value if name in BYTES else redactor.named_text(name, value) if name else redactor.text(value)
        case Mapping():
            return {key: redact(each, redactor, key) for key, each in value.items()}
        case list() | tuple():
            return [redact(each, redactor, name) for each in value]
        case _:
            return value


def prompt_messages(value: object) -> list[dict[str, Any]]:
    """The messages that a prompt function has returned: a text, one message, or several."""
    match value:
        case str():
            return [{"role": "user", "content": text_part(value)}]
        case Mapping() if "role" in value:
            return [dict(value)]
        case Mapping() if "type" in value:
            return [{"role": "user", "content": dict(value)}]
        case list() | tuple():
            return [message for each in value for message in prompt_messages(each)]
        case _:
            raise HandrailError(f"A prompt returned {value!r:.200}. Return a text, parts, or messages with a role.")
