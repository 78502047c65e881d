"""Answers that must fit a JSON Schema: find the JSON in the text, parse it, check it, say what is wrong with it."""

import json
import re
from typing import Any

import jsonschema_rs
from pydantic import BaseModel
from pydantic_core import to_json

from handrail.conversation.blocks import Json
from handrail.errors import HandrailError, InputError
from handrail.tools.schema import model_schema, parse_model

FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
MAX_PROBLEMS = 5
VALUE = "value"
SHARED = ("$defs", "definitions", "$schema")
"""What stays at the root of a schema, where references expect it."""


class JsonAnswer:
    """The last answer as checked data: a mapping for a schema, an instance for a Pydantic model."""

    def __init__(self, output: Json | type[BaseModel]) -> None:
        self._model = output if isinstance(output, type) else None
        schema = model_schema(output) if isinstance(output, type) else dict(output)
        try:
            self._validator = jsonschema_rs.validator_for(schema)
        except ValueError as error:
            reason = str(error).partition("\n")[0]
            raise HandrailError(
                f"The schema for the answer cannot be used: {reason}. Give a JSON Schema with an object at its root, "
                "or a Pydantic model."
            ) from error
        self.schema = to_json(schema)
        self._is_wrapped = schema.get("type") != "object" and "properties" not in schema

    @property
    def tool_schema(self) -> dict[str, Any]:
        """The schema as the input of a tool, which must be an object: any other value goes into a field of one."""
        schema: dict[str, Any] = json.loads(self.schema)
        if not self._is_wrapped:
            return {"type": "object", **schema}
        shared: dict[str, Any] = {name: schema.pop(name) for name in SHARED if name in schema}
        return {"type": "object", "properties": {VALUE: schema}, "required": [VALUE], **shared}

    def unwrap(self, given: Json) -> Any:
        """The answer from the input of that tool."""
        return given[VALUE] if self._is_wrapped else dict(given)

    def check(self, text: str) -> tuple[Any, str]:
        """The value, and what is wrong with the text (empty = nothing)."""
        try:
            value = json.loads(_json_in(text))
        except ValueError as error:
            return None, f"it is not JSON ({error})."
        return self.check_value(value)

    def check_value(self, value: Any) -> tuple[Any, str]:
        """The value as it is handed to the caller, and what is wrong with it (empty = nothing)."""
        if self._model is not None:
            return _instance(self._model, value)
        problems = [
            f"{'.'.join(map(str, error.instance_path)) or 'the whole'}: {error.message}."
            for error in self._validator.iter_errors(value)
        ]
        return (None, " ".join(problems[:MAX_PROBLEMS])) if problems else (value, "")


def _instance(model: type[BaseModel], value: Any) -> tuple[Any, str]:
    if not isinstance(value, dict):
        return None, f"an object is wanted, and it is {value!r}."
    try:
        return parse_model(model, value), ""
    except InputError as error:
        return None, " ".join(error.problems[:MAX_PROBLEMS])


def _json_in(text: str) -> str:
    """The text, or the content of its last code fence: models like to wrap JSON."""
    stripped = text.strip()
    fenced = FENCED.findall(stripped)
    return fenced[-1] if fenced and not stripped.startswith(("{", "[")) else stripped
