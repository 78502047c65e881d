"""Blocks without secrets that still fit together: ids, kinds and encoded data stay as they are."""

from collections.abc import Callable
from typing import Any, TypeAlias

from handrail.conversation.coding import OWN, THOUGHTS, Value

Clean: TypeAlias = Callable[[Any], Any]
"""Takes the secrets out of a JSON value."""

HOLDS_TOGETHER = frozenset({"type", "id", "tool_use_id", "name"})


def as_it_is(value: Any) -> Any:
    """Takes nothing out."""
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
            return {key: each if key in HOLDS_TOGETHER else clean(each) for key, each in value.items()}


def _clean_thinking(value: Value, clean: Clean) -> Value:
    """Whoever signed a thought does not take it back changed, so one that held a secret loses its signature."""
    said = {key: each for key, each in value.items() if key in ("thinking", OWN)}
    if clean(said) == said:
        return value
    return {"type": "thinking", "thinking": clean(value["thinking"]), "signature": ""}
