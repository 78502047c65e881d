"""
What requests say of the built-in tools, made beforehand by `make definitions`.

Describing a tool takes its module and Pydantic, which no first request should wait for. Only what is the same in
every run can be written down: a tool that computes its prompt or schema, or whether it is enabled, is not in the file.
"""

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from handrail.tools.pool import AnyTool
from handrail.tools.stand_in import StandIn
from handrail.tools.tool import PLAIN_VIEW, Tool

FILE = Path(__file__).with_name("definitions.json")
SAID = ("name", "aliases", "search_hint", "should_defer", "always_load")
FIXED = ("prompt", "input_schema", "schema_json", "is_enabled")


def stand_in(kind: str, module: str, load: Callable[[], AnyTool]) -> StandIn | None:
    """The stand-in for a tool, by the name of its class; None = the tool must speak for itself."""
    known = _load_definitions().get(kind)
    if known is None:
        return None
    said = {**known, "aliases": tuple(known["aliases"])}
    schema = json.dumps(said.pop("input_schema"), ensure_ascii=False, separators=(",", ":"))
    return StandIn(schema_json=schema.encode(), load=load, module=module, **said)


def render_definitions(tools: Iterable[AnyTool]) -> str:
    """The content of the file for these tools."""
    lines = {type(tool).__name__: _definition(tool) for tool in tools if is_fixed(tool)}
    return json.dumps(dict(sorted(lines.items())), ensure_ascii=False, indent=1) + "\n"


def is_fixed(tool: AnyTool) -> bool:
    """Whether all that requests say of the tool stands in its class and the text beside it."""
    kind = type(tool)
    inherited = all(getattr(kind, member) is getattr(Tool, member) for member in FIXED)
    return inherited and not {*SAID, "input_model"} & vars(tool).keys()


def _definition(tool: AnyTool) -> dict[str, Any]:
    said = {name: getattr(tool, name) for name in SAID}
    return {**said, "text": tool.prompt(PLAIN_VIEW), "input_schema": tool.input_schema}


@cache
def _load_definitions() -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
    return known
