"""OpenAI's Responses format: writes requests; `openai_responses_reader` reads the answers."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from handrail.conversation.blocks import (
    AssistantBlock,
    BrokenToolUse,
    Document,
    Image,
    ResultBlock,
    ServerBlock,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
    UserBlock,
)
from handrail.conversation.messages import AssistantMessage
from handrail.conversation.request import Request
from handrail.lazy import lazy_pattern
from handrail.providers.api import Api, Headers, SharedPrefix, insert_marks, loaded_tools, wire_id, wire_name
from handrail.providers.openai_chat import EFFORTS, document_text, is_strict
from handrail.providers.openai_responses_reader import ResponsesReader
from handrail.providers.quirks import Quirks
from handrail.providers.wire import dump


class ResponsesWriter:
    """Resends all items (`store` is off), reasoning encrypted. Order: options, tools, instructions, input."""

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks
        self._ids = lazy_pattern(quirks.call_ids)
        self._prefix = SharedPrefix(_tools_and_system)
        self.key = f"openai-responses:{quirks.call_ids}:{quirks.files}:{quirks.images}"

    def body(self, request: Request, stream: bool) -> bytes:
        options = dump(self._options(request, stream))[:-1]
        items = insert_marks(request.history.encode(self), b"")
        return b"".join((options, self._prefix.of(request), b',"input":[', *items, b"]}"))

    def headers(self, request: Request) -> Headers:
        return ()

    def assistant(self, message: AssistantMessage) -> bytes:
        """The items of an answer. A reasoning item at the end is left out: it must come before what it led to."""
        items = [(block, item) for block in message.content if (item := self._assistant_item(block)) is not None]
        while items and isinstance(items[-1][0], Thinking):
            items.pop()
        return b",".join(dump(item) for _, item in items)

    def user(self, blocks: Sequence[UserBlock]) -> tuple[bytes, int]:
        """Results as output items, then the text."""
        items: list[dict[str, Any]] = [self._result(block) for block in blocks if isinstance(block, ToolResult)]
        words = [block for block in blocks if not isinstance(block, ToolResult)]
        parts = [self._part(block) for block in words if not (isinstance(block, Text) and not block.text.strip())]
        if parts or not items:
            items.append({"role": "user", "content": parts or "(nothing)"})
        return b",".join(map(dump, items)), -1

    def _options(self, request: Request, stream: bool) -> dict[str, Any]:
        options: dict[str, Any] = {"model": request.model, "stream": stream, "store": False}
        if self._quirks.cache_key and request.chain.id:
            options["prompt_cache_key"] = request.chain.id
        if self._quirks.encrypted_reasoning:
            options["include"] = ["reasoning.encrypted_content"]
            reasoning = {"effort": EFFORTS[request.effort]} if request.effort else {}
            options["reasoning"] = reasoning if request.thinking.mode == "off" else {**reasoning, "summary": "auto"}
        elif request.effort:
            options["reasoning"] = {"effort": EFFORTS[request.effort]}
        if any(tool.name == self._quirks.web_search for tool in request.tools):
            options["include"] = [*options.get("include", ()), "web_search_call.action.sources"]
        if request.max_tokens:
            options["max_output_tokens"] = request.max_tokens
        if request.schema is not None and self._quirks.json_schema:
            schema = json.loads(request.schema)
            shape = {"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema)}
            options["text"] = {"format": shape}
        return options

    def _assistant_item(self, block: AssistantBlock) -> Mapping[str, Any] | None:
        match block:
            case Text():
                content = [{"type": "output_text", "text": block.text}]
                return {"type": "message", "role": "assistant", "content": content} if block.text.strip() else None
            case Thinking():
                known = block.raw.get("type") == "reasoning" and block.raw.get("encrypted_content")
                return {key: value for key, value in block.raw.items() if key != "status"} if known else None
            case ToolUse() | BrokenToolUse():
                text = dump(block.input).decode() if isinstance(block, ToolUse) else "{}"
                name, call_id = wire_name(block.name), wire_id(block.id, self._ids)
                return {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}
            case ServerBlock():
                return block.raw if block.type.endswith("_call") or block.type.startswith("mcp_list") else None

    def _result(self, result: ToolResult) -> dict[str, Any]:
        content = result.content
        output: object = "\n".join(filter(None, (_words(block) for block in content)))
        if result.is_error and not str(output).startswith("Error"):
            output = f"Error: {output}"
        media = [self._part(block) for block in content if isinstance(block, Image | Document)]
        if media:
            output = [{"type": "input_text", "text": output}, *media] if output else media
        return {"type": "function_call_output", "call_id": wire_id(result.tool_use_id, self._ids), "output": output}

    def _part(self, block: Text | Image | Document) -> dict[str, Any]:
        match block:
            case Text():
                return {"type": "input_text", "text": block.text}
            case Image():
                return {"type": "input_image", "image_url": f"data:{block.media_type};base64,{block.data}"}
            case Document() if block.media_type == "application/pdf":
                data = f"data:{block.media_type};base64,{block.data}"
                return {"type": "input_file", "filename": block.title or "document.pdf", "file_data": data}
            case Document():
                return {"type": "input_text", "text": document_text(block)}


def _words(block: ResultBlock) -> str:
    match block:
        case Text():
            return block.text
        case ToolReference():
            return f"The tool {block.name} is loaded now."
        case Image() | Document():
            return ""


def _tools_and_system(request: Request) -> bytes:
    loaded = loaded_tools(request)
    tools = b',"tools":[' + b",".join([_tool(tool.definition) for tool in loaded]) + b"]" if loaded else b""
    parts = [part for part in request.system if part.strip()]
    return tools + b',"instructions":' + dump("\n\n".join(parts)) if parts else tools


@lru_cache(maxsize=4096)
def _tool(definition: bytes) -> bytes:
    tool: Mapping[str, Any] = json.loads(definition)
    if "input_schema" not in tool:  # a tool of the server
        return definition
    parameters = {"parameters": tool["input_schema"], "strict": False}
    return dump({"type": "function", "name": tool["name"], "description": tool.get("description", ""), **parameters})


API = Api(
    name="openai-responses",
    path="/responses",
    auth="authorization",
    headers=(),
    writer=ResponsesWriter,
    reader=ResponsesReader,
)
