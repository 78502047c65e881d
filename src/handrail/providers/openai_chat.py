"""The chat.completions format: writes requests; `openai_chat_reader` reads the answers."""

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from handrail.conversation.blocks import (
    BrokenToolUse,
    Document,
    Image,
    ResultBlock,
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
from handrail.providers.openai_chat_reader import REASONING_FIELDS, ChatReader
from handrail.providers.quirks import Quirks
from handrail.providers.wire import dump, string

EFFORTS = {"minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "xhigh"}


class ChatWriter:
    """Order on the wire: options, tools, messages with the system prompt first."""

    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks
        self._ids = lazy_pattern(quirks.call_ids)
        self._prefix = SharedPrefix(_tools_and_system)
        shape = (quirks.null_content, quirks.replay_reasoning, quirks.call_ids, quirks.files, quirks.images)
        self.key = f"openai:{shape}"

    def body(self, request: Request, stream: bool) -> bytes:
        options = dump(self._options(request, stream))[:-1]
        prefix = self._prefix.of(request)
        messages = insert_marks(request.history.encode(self), b"")
        comma = b"," if any(messages) and not prefix.endswith(b"[") else b""
        return b"".join((options, prefix, comma, *messages, b"]}"))

    def headers(self, request: Request) -> Headers:
        return ()

    def assistant(self, message: AssistantMessage) -> bytes:
        """An answer: its text, its calls, and its reasoning where the vendor wants it back."""
        text = message.text
        calls = [self._call(call) for call in message.calls]
        reasoning = self._reasoning(message)
        if not calls and not text.strip():
            return b""
        empty = None if calls and self._quirks.null_content else ""
        wire: dict[str, Any] = {"role": "assistant", "content": text or empty, **reasoning}
        if calls:
            wire["tool_calls"] = calls
        return dump(wire)

    def user(self, blocks: Sequence[UserBlock]) -> tuple[bytes, int]:
        """Results as one tool message each; media and text in a user message after them."""
        messages: list[dict[str, Any]] = []
        parts: list[dict[str, Any]] = []
        for block in blocks:
            if isinstance(block, ToolResult):
                messages.append(self._result(block))
                parts.extend(self._result_media(block))
            elif not (isinstance(block, Text) and not block.text.strip()):
                parts.append(self._part(block))
        if parts or not messages:
            only_text = len(parts) == 1 and parts[0]["type"] == "text"
            messages.append({"role": "user", "content": parts[0]["text"] if only_text else parts or "(nothing)"})
        return b",".join(map(dump, messages)), -1

    def _options(self, request: Request, stream: bool) -> dict[str, Any]:
        quirks = self._quirks
        options: dict[str, Any] = {"model": request.model, "stream": stream}
        if stream and quirks.stream_options:
            options["stream_options"] = {"include_usage": True}
        if quirks.cache_key and request.chain.id:
            options["prompt_cache_key"] = request.chain.id
        if request.max_tokens:
            options[quirks.max_tokens_field] = request.max_tokens
        options |= _thinking(request, quirks)
        if request.schema is not None and quirks.json_schema:
            options["response_format"] = _format(request.schema)
        return options

    def _call(self, call: ToolUse | BrokenToolUse) -> dict[str, Any]:
        # a broken call goes back without its broken text: templates of local servers parse the arguments
        text = "{}" if isinstance(call, BrokenToolUse) else dump(call.input).decode()
        wire = {
            "id": wire_id(call.id, self._ids),
            "type": "function",
            "function": {"name": wire_name(call.name), "arguments": text},
        }
        return wire | dict(call.extra) if isinstance(call, ToolUse) and "extra_content" in call.extra else wire

    def _reasoning(self, message: AssistantMessage) -> dict[str, Any]:
        if self._quirks.replay_reasoning == "never":
            return {}
        raws = [block.raw for block in message.content if isinstance(block, Thinking)]
        if self._quirks.replay_reasoning == "details":
            details = [detail for raw in raws for detail in raw.get("reasoning_details", ())]
            return {"reasoning_details": details} if details else {}
        for field in REASONING_FIELDS:
            text = "".join(string(raw.get(field)) for raw in raws)
            if text:
                return {field: text}
        return {}

    def _result(self, result: ToolResult) -> dict[str, Any]:
        words = "\n".join(filter(None, map(_words, result.content)))
        if result.is_error and not words.startswith("Error"):
            words = f"Error: {words}"
        return {"role": "tool", "tool_call_id": wire_id(result.tool_use_id, self._ids), "content": words}

    def _result_media(self, result: ToolResult) -> list[dict[str, Any]]:
        media = [self._part(part) for part in result.content if isinstance(part, Image | Document)]
        if not media:
            return []
        call = wire_id(result.tool_use_id, self._ids)
        return [{"type": "text", "text": f"From the result of call {call}:"}, *media]

    def _part(self, block: Text | Image | Document) -> dict[str, Any]:
        match block:
            case Text():
                return {"type": "text", "text": block.text}
            case Image() if self._quirks.images:
                return {"type": "image_url", "image_url": {"url": f"data:{block.media_type};base64,{block.data}"}}
            case Document() if block.media_type == "application/pdf" and self._quirks.files:
                data = f"data:{block.media_type};base64,{block.data}"
                return {"type": "file", "file": {"filename": block.title or "document.pdf", "file_data": data}}
            case Document() if block.media_type != "application/pdf":
                return {"type": "text", "text": document_text(block)}
            case Image() | Document():
                return {"type": "text", "text": f"[{block.media_type} left out: this provider does not take it]"}


def document_text(block: Document) -> str:
    """The text of a document, after its title."""
    text = base64.b64decode(block.data).decode("utf-8", "replace")
    return f"{block.title}:\n{text}" if block.title else text


def _words(block: ResultBlock) -> str:
    match block:
        case Text():
            return block.text
        case ToolReference():
            return f"The tool {block.name} is loaded now."
        case Image() | Document():
            return f"[{block.media_type}: see the next message]"


def _tools_and_system(request: Request) -> bytes:
    """The tools, and the beginning of the messages."""
    loaded = loaded_tools(request)
    tools = b',"tools":[' + b",".join([_tool(tool.definition) for tool in loaded]) + b"]" if loaded else b""
    parts = [part for part in request.system if part.strip()]
    system = dump({"role": "system", "content": "\n\n".join(parts)}) if parts else b""
    return tools + b',"messages":[' + system


@lru_cache(maxsize=4096)
def _tool(definition: bytes) -> bytes:
    tool: Mapping[str, Any] = json.loads(definition)
    function = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["input_schema"]}
    return dump({"type": "function", "function": function})


def _format(schema: bytes) -> dict[str, Any]:
    value = json.loads(schema)
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": value, "strict": is_strict(value)}}


def is_strict(schema: Any) -> bool:
    """Whether OpenAI's strict mode takes this schema: every object closed, every property required."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties") or {}
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
        if not all(map(is_strict, properties.values())):
            return False
    return all(
        is_strict(value) for key, value in schema.items() if key not in {"properties", "enum", "const", "default"}
    )


def _thinking(request: Request, quirks: Quirks) -> dict[str, Any]:
    effort = EFFORTS[request.effort] if request.effort else None
    mode = request.thinking.mode
    on = mode == "adaptive" or request.thinking.budget is not None
    match quirks.thinking_field:
        case "thinking" if mode != "default" or on:
            return {"thinking": {"type": "disabled" if mode == "off" else "enabled"}}
        case "enable_thinking" if mode != "default" or on:
            return {"enable_thinking": mode != "off"}
        case "reasoning" if mode == "off":
            return {"reasoning": {"enabled": False}}
        case "reasoning" if effort:
            return {"reasoning": {"effort": effort}}
        case "reasoning" if on:
            return {"reasoning": {"enabled": True}}
        case "reasoning_effort" if effort:
            return {"reasoning_effort": effort}
        case _:
            return {}


API = Api(
    name="openai",
    path="/chat/completions",
    auth="authorization",
    headers=(),
    writer=ChatWriter,
    reader=ChatReader,
)
