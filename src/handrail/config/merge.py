"""
Merges the values of several sources.

    a plain value      the highest source that sets it
    an object          key by key
    a list             all of them, the highest source first, without duplicates
    an ordered list    the whole list of the highest source (fallbackModel and the like)
    hooks              per event, all of them: they are objects of lists, so they need no rule of their own

Permission rules are lists, so no file overrides those of another: a deny rule counts wherever it is written.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from handrail.config.keys import Key, Tree, tree


def merge_values(values: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The merged values of all sources, which are given highest first."""
    result: dict[str, Any] = {}
    for lower in values:
        result = _object(result, lower, tree())
    return result


def _object(high: Mapping[str, Any], low: Mapping[str, Any], level: Tree | Key | None) -> dict[str, Any]:
    result = dict(high)
    for name, value in low.items():
        known = level.get(name) if isinstance(level, Mapping) else None
        result[name] = _both(high[name], value, known) if name in high else _distinct(value, known)
    return result


def _both(high: Any, low: Any, known: Tree | Key | None) -> Any:
    if isinstance(known, Key) and known.whole:
        return high
    if isinstance(high, dict) and isinstance(low, dict):
        return _object(high, low, known)
    if isinstance(high, list) and isinstance(low, list):
        return unique([*high, *low])
    return high


def _distinct(value: Any, known: Tree | Key | None) -> Any:
    if isinstance(known, Key) and known.whole:
        return value
    if isinstance(value, list):
        return unique(value)
    return _object({}, value, known) if isinstance(value, dict) else value


def unique(items: Iterable[Any]) -> list[Any]:
    """The items without duplicates, in their order. Most of them are texts, which are compared by hash."""
    seen: set[str] = set()
    others: list[Any] = []
    kept: list[Any] = []
    for item in items:
        if isinstance(item, str):
            if item not in seen:
                seen.add(item)
                kept.append(item)
        elif not any(_same(item, other) for other in others):
            others.append(item)
            kept.append(item)
    return kept


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)
