"""
Blocks as JSON values and back, without loss.

The values are those of the Messages format, so that other programs can read them. What that format cannot express is
kept under the key `handrail`.
"""

from collections.abc import Mapping, Sequence
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

Block = AssistantBlock | UserBlock | ToolReference
Value = dict[str, Any]

OWN = "handrail"
THOUGHTS = frozenset({"thinking", "redacted_thinking"})


def block_value(block: Block) -> Value:
    """A block as a JSON value."""
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking():
            return _thinking_value(block)
        case ToolUse() | BrokenToolUse():
            return _call(block)
        case ServerBlock(raw=raw):
            return dict(raw)
        case Image(data, media_type):
            return {"type": "image", "source": _source(data, media_type)}
        case Document(data, media_type, title):
            return {"type": "document", "source": _source(data, media_type), "title": title}
        case ToolReference(name):
            return {"type": "tool_reference", "tool_name": name}
        case ToolResult(call_id, content, is_error):
            parts = [block_value(part) for part in content]
            return {"type": "tool_result", "tool_use_id": call_id, "content": parts, "is_error": is_error}


def _thinking_value(block: Thinking) -> Value:
    if block.raw.get("type") in THOUGHTS:
        return dict(block.raw)
    thought = {"type": "thinking", "thinking": block.text, "signature": ""}
    return {**thought, OWN: {"raw": dict(block.raw)}} if block.raw else thought


def _call(block: ToolUse | BrokenToolUse) -> Value:
    call: Value = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
    if isinstance(block, BrokenToolUse):
        return {**call, OWN: {"broken": block.raw_input, "problem": block.problem}}
    call["input"] = dict(block.input)
    return {**call, OWN: {"extra": dict(block.extra)}} if block.extra else call


def _source(data: str, media_type: str) -> Value:
    return {"type": "base64", "media_type": media_type, "data": data}


def assistant_block(value: Mapping[str, Any]) -> AssistantBlock:
    """A block of an answer; unknown ones are the vendor's own. Raises KeyError or TypeError if something lacks."""
    own = value.get(OWN) or {}
    match value["type"]:
        case "text":
            return Text(_text(value["text"]))
        case "thinking" if OWN in value:
            return Thinking(_text(value["thinking"]), own["raw"])
        case "thinking":
            text = _text(value["thinking"])
            return Thinking(text, {} if not value.get("signature") and set(value) <= THOUGHT_KEYS else value)
        case "redacted_thinking":
            return Thinking("", value)
        case "tool_use" if "broken" in own:
            return BrokenToolUse(_text(value["id"]), _text(value["name"]), own["broken"], own["problem"])
        case "tool_use":
            return ToolUse(_text(value["id"]), _text(value["name"]), dict(value["input"]), own.get("extra", {}))
        case kind:
            return ServerBlock(_text(kind), value)


THOUGHT_KEYS = frozenset({"type", "thinking", "signature"})


def user_blocks(content: object) -> tuple[UserBlock, ...]:
    """A user's content: a text or blocks. Raises KeyError or TypeError if something lacks or has no known type."""
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, Sequence):
        raise TypeError(f"the content is {content!r}, neither a text nor a list")
    return tuple(_result(value) if value["type"] == "tool_result" else _user(value) for value in content)


def _result(value: Mapping[str, Any]) -> ToolResult:
    content = value.get("content") or ()
    parts: tuple[ResultBlock, ...] = (
        (Text(content),) if isinstance(content, str) else tuple(_result_block(part) for part in content)
    )
    return ToolResult(_text(value["tool_use_id"]), parts, value.get("is_error") is True)


def _result_block(value: Mapping[str, Any]) -> ResultBlock:
    if value["type"] == "tool_reference":
        return ToolReference(_text(value["tool_name"]))
    return _user(value)


def _user(value: Mapping[str, Any]) -> Text | Image | Document:
    match value["type"]:
        case "text":
            return Text(_text(value["text"]))
        case "image":
            return Image(_text(value["source"]["data"]), _text(value["source"]["media_type"]))
        case "document":
            source = value["source"]
            return Document(_text(source["data"]), _text(source["media_type"]), _text(value.get("title") or ""))
        case kind:
            raise TypeError(f"a block of the unknown type {kind!r}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a text is due")
    return value
