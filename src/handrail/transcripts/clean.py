"""Removes secrets from blocks; ids, types and encoded data stay as they are."""

from collections.abc import Callable
from typing import Any, TypeAlias

from handrail.conversation.block_json import OWN, THOUGHTS, Value

Clean: TypeAlias = Callable[[Any], Any]
"""Removes the secrets from a JSON value."""

FIXED_KEYS = frozenset({"type", "id", "tool_use_id", "name"})


def keep_all(value: Any) -> Any:
    """Removes nothing."""
    return value


def clean_block(value: Value, clean: Clean) -> Value:
    """A block, as a JSON value, without secrets."""
    match value["type"]:
        case "tool_result":
            return {**value, "content": [clean_block(part, clean) for part in value["content"]]}
        case "image":
            return value
        case "document":
            return {**value, "title": clean(value["title"])}
        case kind if kind in THOUGHTS:
            return _clean_thinking(value, clean)
        case _:
            return {key: each if key in FIXED_KEYS else clean(each) for key, each in value.items()}


def _clean_thinking(value: Value, clean: Clean) -> Value:
    """The provider rejects a signed thought that was changed, so one with a secret loses its signature."""
    content = {key: each for key, each in value.items() if key in ("thinking", OWN)}
    if clean(content) == content:
        return value
    return {"type": "thinking", "thinking": clean(value["thinking"]), "signature": ""}
