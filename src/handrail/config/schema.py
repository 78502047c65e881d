"""Builds the JSON Schema of settings files, for editors, from the table of keys."""

from collections.abc import Mapping
from typing import Any

from handrail.config.keys import Key, Tree, tree


def build_schema() -> dict[str, Any]:
    """The whole schema. Unknown keys are allowed: files may be shared with other programs."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "handrail settings",
        "description": "Settings of handrail: settings.json, settings.local.json and managed-settings.json.",
        **_section(tree()),
    }


def _section(level: Tree) -> dict[str, Any]:
    return {"type": "object", "properties": {name: _property(known) for name, known in level.items()}}


def _property(known: Tree | Key) -> dict[str, Any]:
    if isinstance(known, Mapping):
        return _section(known)
    schema: dict[str, Any] = {
        "description": known.text + (" (policy files only)" if known.managed else ""),
        **known.schema,
    }
    if known.schema.get("type") == "array" and not known.whole:
        schema["uniqueItems"] = True
    return schema
