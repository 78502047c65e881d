"""Parameters of a tool that its schema wants in headers too: `"x-mcp-header": "Region"`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from handrail.mcp.dialect import header_value

KEY = "x-mcp-header"
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
KINDS = ("string", "integer", "boolean")
INNER = frozenset(
    [
        "items",
        "contains",
        "unevaluatedItems",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
        "allOf",
        "anyOf",
        "oneOf",
        "prefixItems",
        "patternProperties",
        "dependentSchemas",
        "$defs",
        "definitions",
    ]
)
"""The keywords whose values are schemas, or lists or objects of them."""

Path: TypeAlias = tuple[str, ...]


def parameter_headers(schema: Mapping[str, Any]) -> dict[Path, str]:
    """The names of headers by the path of their parameters; ValueError if the schema asks for what cannot be."""
    found: dict[Path, str] = {}
    for path, each in _positions(schema, (), 0):
        if KEY not in each:
            continue
        name, kind = each[KEY], each.get("type")
        if not path:
            raise ValueError(f"{KEY!r} stands where no parameter is")
        if not isinstance(name, str) or not TOKEN.fullmatch(name):
            raise ValueError(f"{KEY!r} of {'.'.join(path)!r} is not the name of a header")
        if kind not in KINDS:
            raise ValueError(f"{KEY!r} of {'.'.join(path)!r} needs a parameter of the type {', '.join(KINDS)}")
        if name.lower() in {other.lower() for other in found.values()}:
            raise ValueError(f"two parameters want the header {name!r}")
        found[path] = name
    return found


def values_for_headers(names: Mapping[Path, str], given: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a call with this input."""
    headers: dict[str, str] = {}
    for path, name in names.items():
        value: Any = given
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        match value:
            case bool():
                headers[f"mcp-param-{name.lower()}"] = "true" if value else "false"
            case str():
                headers[f"mcp-param-{name.lower()}"] = header_value(value)
            case int() if abs(value) < 1 << 64:
                headers[f"mcp-param-{name.lower()}"] = str(value)
    return headers


def _positions(schema: object, path: Path | None, depth: int) -> Iterator[tuple[Path | None, Mapping[str, Any]]]:
    """All schemas in a schema; with their path as long as only `properties` lead to them, else None."""
    if not isinstance(schema, Mapping) or depth > 100:
        return
    yield path, schema
    for key, value in schema.items():
        if key == "properties" and isinstance(value, Mapping):
            for name, each in value.items():
                yield from _positions(each, None if path is None else (*path, name), depth + 1)
        elif key in INNER:
            inner = value if isinstance(value, list) else [value]
            for each in inner:
                yield from _positions(each, None, depth + 1)
                if isinstance(each, Mapping) and key in (
                    "patternProperties",
                    "dependentSchemas",
                    "$defs",
                    "definitions",
                ):
                    for one in each.values():
                        yield from _positions(one, None, depth + 1)
