"""The JSON Schema of a run's record, from the types themselves."""

from typing import Any

from pydantic import TypeAdapter

from handrail.view.model import FORMAT, VERSION, RunRecord


def run_schema() -> dict[str, Any]:
    """The schema that `RunRecord.as_json` fits."""
    schema = TypeAdapter(RunRecord).json_schema()
    own = {"format": {"const": FORMAT}, "version": {"const": VERSION}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "A run of handrail",
        "properties": {**own, **schema["properties"]},
        "required": ["format", "version", *schema["properties"]],
    }
