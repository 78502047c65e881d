"""Tools whose input is described by a raw JSON Schema, as MCP servers send it. The schema is not trusted."""

import copy
from abc import ABC
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import jsonschema_rs

from handrail.conversation.blocks import Json
from handrail.errors import InputError, ToolDefinitionError
from handrail.tools.schema import did_you_mean, shown
from handrail.tools.tool import Tool

MAX_BACKTRACKING = 100_000  # a pattern that needs more is hostile or broken; the field then counts as wrong


class RawTool(Tool[Json], ABC):
    """A tool with a JSON Schema instead of a model. Its arguments are the checked mapping itself."""

    def __init__(self, name: str, schema: Json) -> None:
        if schema.get("type") != "object":
            raise ToolDefinitionError(
                f"The input schema of {name!r} has the root type {schema.get('type')!r}. It must be 'object'."
            )
        self.name = name
        self.raw_schema = schema

    @cached_property
    def input_schema(self) -> Json:
        return self.raw_schema

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        try:
            return jsonschema_rs.validator_for(
                dict(self.raw_schema),
                retriever=_refuse,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKING),
            )
        except ValueError as error:
            reason = str(error).partition("\n")[0]
            raise ToolDefinitionError(f"The input schema of {self.name!r} cannot be used: {reason}") from error

    def parse(self, raw: Json) -> Json:
        errors = list(self._validator.iter_errors(raw))
        if not errors:
            return raw
        numbers = {tuple(e.instance_path): n for e in errors if (n := _as_number(e)) is not None}
        if numbers:
            raw = _replaced(raw, numbers)
            errors = list(self._validator.iter_errors(raw))
        if errors:
            raise InputError(tuple(_sentences(errors, self.raw_schema)))
        return raw


def _refuse(uri: str) -> Any:
    raise ValueError(f"it refers to {uri!r}, and references to other documents are never followed")


def _as_number(error: jsonschema_rs.ValidationError) -> int | float | None:
    """The number that a string means, where the schema wants a number and no string."""
    if not isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Type) or not isinstance(error.instance, str):
        return None
    wanted = error.kind.types
    try:
        if "integer" in wanted or "number" in wanted:
            return int(error.instance)
    except ValueError:
        pass  # perhaps a fraction
    try:
        return float(error.instance) if "number" in wanted else None
    except ValueError:
        return None


def _replaced(raw: Json, values: Mapping[tuple[str | int, ...], int | float]) -> Json:
    changed = copy.deepcopy(dict(raw))
    for path, value in values.items():
        node: Any = changed
        for part in path[:-1]:
            node = node[part]
        node[path[-1]] = value
    return changed


def _sentences(errors: Iterable[jsonschema_rs.ValidationError], schema: Json) -> Iterable[str]:
    for error in errors:
        path = [str(part) for part in error.instance_path]
        match error.kind.as_dict():
            case {"property": str(name)}:
                yield f"The required field {'.'.join([*path, name])!r} is missing."
            case {"unexpected": list(names)}:
                for name in names:
                    hint = "" if path else did_you_mean(name, schema.get("properties", {}))
                    yield f"The field {'.'.join([*path, name])!r} is unexpected.{hint}"
            case _:
                where = f"The field {'.'.join(path)!r}" if path else "The input"
                yield f"{where} is wrong: {shown(error.message, 300)[1:-1]}."
