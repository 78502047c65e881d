"""What strict model servers refuse: histories in which calls and results do not match."""

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]


def pairing_problem(api: str, body: Json) -> str:
    """Why a strict server answers 400 to this request; empty if it does not."""
    match api:
        case "anthropic":
            return _anthropic(body.get("messages", []))
        case "openai":
            return _chat(body.get("messages", []))
        case _:
            return _responses(body.get("input", []))


def _anthropic(messages: Sequence[Json]) -> str:
    waiting: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        content = message["content"]
        blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(waiting):
            return f"messages.{number}: calls {waiting} need one result each, found {results}"
        if any(block["type"] == "tool_result" for block in blocks[len(results) :]):
            return f"messages.{number}: tool_result blocks must come first"
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks) or not blocks:
            return f"messages.{number}: text content blocks must be non-empty"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if message["role"] == "user" and waiting:
            return f"messages.{number}: a user message holds tool_use"
        if len({*waiting}) != len(waiting) or seen & {*waiting}:
            return f"messages.{number}: tool_use ids must be unique"
        seen |= {*waiting}
    return f"calls {waiting} have no results" if waiting else ""


def _chat(messages: Sequence[Json]) -> str:
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"messages.{number}: no open call {message['tool_call_id']!r}"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"messages.{number}: calls {waiting} have no tool message"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return f"calls {waiting} have no tool message" if waiting else ""


def _responses(items: Sequence[Json]) -> str:
    waiting: list[str] = []
    for number, item in enumerate(items):
        if item.get("type") == "function_call":
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in waiting:
                return f"input.{number}: no open call {item['call_id']!r}"
            waiting.remove(item["call_id"])
        elif item.get("role") == "user" and waiting:
            return f"input.{number}: no tool output found for {waiting}"
    return f"no tool output found for {waiting}" if waiting else ""
