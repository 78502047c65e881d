"""
Pins the tools of servers: their names, descriptions and schemas as they were when a person approved them.

A server can describe its tools anew at any time, and what it says goes to the model. What is not as it was approved is
held back, and a diff shows what is different. The lock is canonical JSON, so that it can be reviewed and merged.
"""

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Literal, Protocol

from handrail.errors import McpError
from handrail.records import record

VERSION = 1
MAX_DIFF_LINES = 200
TITLE, USED_META = "tool.title", "anthropic/"
EMPTY: Mapping[str, Any] = {}


class Described(Protocol):
    """A tool as its server describes it."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Any: ...
    @property
    def annotations(self) -> Mapping[str, Any]: ...
    @property
    def title(self) -> str: ...
    @property
    def meta(self) -> Mapping[str, Any]: ...


@record
class PinnedTool:
    """What was approved of one tool."""

    name: str
    description: str
    schema: Any = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The hash of all of it, the same on every machine."""
        parts = [self.name, self.description, self.schema, dict(self.annotations)]
        return f"sha256:{hashlib.sha256(canonical_json(parts)).hexdigest()}"


Pins = Mapping[str, Mapping[str, PinnedTool]]
"""By server and by name."""


@record
class ToolChange:
    """One difference between a tool and its pin; `before` is None for a new tool, `now` for one that is gone."""

    kind: Literal["new", "changed", "gone"]
    name: str
    before: PinnedTool | None
    now: PinnedTool | None


def canonical_json(value: object) -> bytes:
    """The value as JSON in the one form that the same values always have."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def pin(tool: Described) -> PinnedTool:
    """A tool as it is now. What we use of its title and `_meta` counts as annotations."""
    title = {TITLE: tool.title} if tool.title else {}
    used = {name: value for name, value in tool.meta.items() if name.startswith(USED_META)}
    return PinnedTool(tool.name, tool.description, tool.schema, {**tool.annotations, **title, **used})


def compare(pinned: Mapping[str, PinnedTool], now: Iterable[PinnedTool]) -> tuple[ToolChange, ...]:
    """What is different from the pins, by name. A tool that is gone does no harm, and is named for people."""
    found = {tool.name: tool for tool in now}
    changes: list[ToolChange] = []
    for name in sorted(pinned.keys() | found.keys()):
        before, tool = pinned.get(name), found.get(name)
        if before is None:
            changes.append(ToolChange("new", name, None, tool))
        elif tool is None:
            changes.append(ToolChange("gone", name, before, None))
        elif tool.digest != before.digest:
            changes.append(ToolChange("changed", name, before, tool))
    return tuple(changes)


def diff_lines(change: ToolChange) -> list[str]:
    """What is different about a tool, in lines for people: control characters are made visible."""
    before, now = (_lines(tool) if tool else [] for tool in (change.before, change.now))
    lines = [
        line for line in difflib.unified_diff(before, now, lineterm="", n=2) if not line.startswith(("---", "+++"))
    ]
    if len(lines) > MAX_DIFF_LINES:
        lines = [*lines[:MAX_DIFF_LINES], f"... {len(lines) - MAX_DIFF_LINES} more lines"]
    return [f"{change.kind}: {_visible(change.name)}", *(f"  {_visible(line)}" for line in lines)]


def write_lock(pins: Pins) -> str:
    """The text of a lock file."""
    servers = {
        server: {
            name: {
                "hash": tool.digest,
                "description": tool.description,
                "schema": tool.schema,
                **({"annotations": dict(tool.annotations)} if tool.annotations else {}),
            }
            for name, tool in sorted(tools.items())
        }
        for server, tools in sorted(pins.items())
    }
    return json.dumps({"version": VERSION, "servers": servers}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read_lock(text: str, shown: str) -> dict[str, dict[str, PinnedTool]]:
    """The pins in the text of a lock file; McpError if it is not one, or a newer handrail wrote it."""
    try:
        value = json.loads(text)
        if value["version"] > VERSION:
            raise McpError(f"{shown} was written by a newer handrail. Use that one, or remove the file.")
        pins = {
            str(server): {str(name): _pinned_tool(str(name), each) for name, each in tools.items()}
            for server, tools in value["servers"].items()
        }
        wrong = [
            name for server, tools in pins.items() for name in tools if tools[name].digest != _hash(value, server, name)
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise McpError(f"{shown} is not a lock of MCP tools: {error}. Remove it, or restore it.") from error
    if wrong:
        raise McpError(f"{shown} was changed by hand: the hash of {wrong[0]!r} is not that of its text. Restore it.")
    return pins


def _pinned_tool(name: str, value: Mapping[str, Any]) -> PinnedTool:
    return PinnedTool(name, str(value["description"]), value["schema"], value.get("annotations", EMPTY))


def _hash(value: Any, server: str, name: str) -> object:
    return value["servers"][server][name]["hash"]


def _lines(tool: PinnedTool) -> list[str]:
    annotations = [f"annotations: {canonical_json(dict(tool.annotations)).decode()}"] if tool.annotations else []
    schema = json.dumps(tool.schema, indent=2, sort_keys=True, ensure_ascii=False)
    return [*tool.description.splitlines(), *annotations, *schema.splitlines()]


def _visible(text: str) -> str:
    return "".join(each if each.isprintable() else f"\\u{{{ord(each):x}}}" for each in text)
