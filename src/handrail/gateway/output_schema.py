"""The output schema of a tool as MCP wants it: an object at its root."""

from collections.abc import Mapping
from typing import Any

RESULT = "result"
"""The name under which a value is wrapped that is not an object."""


def object_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema, or that of an object that holds its values as `result`."""
    if schema.get("type") == "object":
        return schema
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    shared = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {"type": "object", "properties": {RESULT: inner}, "required": [RESULT], **shared}


def structured_value(schema: Mapping[str, Any], value: Any) -> Any:
    """A value of the schema in the form that `object_schema` describes."""
    return value if schema.get("type") == "object" else {RESULT: value}
