"""
Changes one value in a JSON text and nothing else: order, blanks, line ends and unknown keys stay as they are.

Pure functions from text to text. Additions are formatted like the text around them.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from handrail.config.json_paths import format_path
from handrail.config.json_text import JsonNode, scan
from handrail.errors import SettingsError


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value at the end of the path; missing objects are created."""
    node, left = _reach(scan(text), path)
    if not left:
        return _splice(text, node.start, node.end, _format_value(text, node.start, value))
    if not isinstance(node.value, dict):
        raise SettingsError(
            f"{format_path(path[: -len(left)])} is not an object, so {left[0]!r} cannot be set in it. Repair it first."
        )
    for name in reversed(left[1:]):
        value = {name: value}
    return _with_part(text, node, json.dumps(left[0], ensure_ascii=False) + ": ", value)


def remove_key(text: str, path: Sequence[str]) -> str:
    """The text without the key at the end of the path."""
    *above, last = path
    parent = scan(text).find(above)
    names = [member.key for member in parent.members] if parent else []
    if parent is None or last not in names:
        return text
    spans = [(member.start, member.node.end) for member in parent.members]
    return _without(text, parent, spans, names.index(last))


def add_items(text: str, path: Sequence[str], items: Sequence[Any]) -> str:
    """The text with new items at the end of a list, which is created if it is missing."""
    found = scan(text).find(path)
    if found is None:
        return set_value(text, path, list(dict.fromkeys(items)))
    _need_list(found, path)
    for item in items:
        node = scan(text).find(path)
        assert node
        if item not in node.value:
            text = _with_part(text, node, "", item)
    return text


def remove_items(text: str, path: Sequence[str], gone: Callable[[Any], bool]) -> str:
    """The text without the items of a list for which `gone` is true."""
    found = scan(text).find(path)
    if found is None:
        return text
    _need_list(found, path)
    for at in reversed([at for at, item in enumerate(found.value) if gone(item)]):
        node = scan(text).find(path)
        assert node
        text = _without(text, node, [(item.start, item.end) for item in node.items], at)
    return text


def _need_list(node: JsonNode, path: Sequence[str]) -> None:
    if not isinstance(node.value, list):
        raise SettingsError(f"{format_path(path)} is not a list. Repair it first.")


def _reach(node: JsonNode, path: Sequence[str]) -> tuple[JsonNode, Sequence[str]]:
    """The deepest value on the path, and what of the path is left."""
    for at, step in enumerate(path):
        inner = node.find([step]) if isinstance(node.value, dict) else None
        if inner is None:
            return node, path[at:]
        node = inner
    return node, ()


def _splice(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _with_part(text: str, node: JsonNode, head: str, value: Any) -> str:
    """One more member or item at the end of an object or list."""
    parts = [(member.start, member.node.end) for member in node.members] or [(i.start, i.end) for i in node.items]
    if parts:
        gap = text[node.start + 1 : parts[0][0]]
        if "\n" not in gap:
            return _splice(text, parts[-1][1], parts[-1][1], f", {head}{json.dumps(value, ensure_ascii=False)}")
        first = _indent_at(text, parts[0][0])
        new = f",{_newline(text)}{first}{head}{_dump(text, value, first)}"
        return _splice(text, parts[-1][1], parts[-1][1], new)
    opened, closed = text[node.start], text[node.end - 1]
    if "\n" not in text.strip() and text.strip() not in ("{}", "[]"):
        return _splice(text, node.start, node.end, f"{opened}{head}{json.dumps(value, ensure_ascii=False)}{closed}")
    outer = _indent_at(text, node.start)
    inner, newline = outer + _unit(text), _newline(text)
    new = f"{opened}{newline}{inner}{head}{_dump(text, value, inner)}{newline}{outer}{closed}"
    return _splice(text, node.start, node.end, new)


def _without(text: str, node: JsonNode, spans: Sequence[tuple[int, int]], at: int) -> str:
    if len(spans) == 1:
        return _splice(text, node.start, node.end, text[node.start] + text[node.end - 1])
    if at:
        return _splice(text, spans[at - 1][1], spans[at][1], "")
    return _splice(text, spans[0][0], spans[1][0], "")


def _format_value(text: str, start: int, value: Any) -> str:
    """A value that replaces another: on several lines only where the file has several."""
    return (
        _dump(text, value, _indent_at(text, start)) if "\n" in text.strip() else json.dumps(value, ensure_ascii=False)
    )


def _dump(text: str, value: Any, indent: str) -> str:
    dumped = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    return dumped.replace("\n", _newline(text) + indent)


def _indent_at(text: str, offset: int) -> str:
    """The indentation of the line of an offset."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One step of indentation, taken from the first key of the file."""
    root = scan(text)
    parts = [member.start for member in root.members] or [item.start for item in root.items]
    if not parts or "\n" not in text[root.start : parts[0]]:
        return "  "
    return _indent_at(text, parts[0]).removeprefix(_indent_at(text, root.start)) or "  "


def _newline(text: str) -> str:
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
