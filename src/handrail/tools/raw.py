"""Tools whose input is described by a raw JSON Schema, as MCP servers send it. The schema is not trusted."""

import copy
import itertools
import math
from abc import ABC
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import jsonschema_rs
from pydantic_core import PydanticSerializationError, from_json, to_json

from handrail.conversation.blocks import Json
from handrail.errors import InputError, ToolDefinitionError
from handrail.lazy import lazy_pattern
from handrail.tools.tool import Tool, check_name
from handrail.tools.untrusted_schema import branches, effort, flatten, trouble
from handrail.tools.wording import brief_repr, cut, first_line, limit_problems, missing_field, unexpected_field, where

MAX_BACKTRACKING = 100_000  # a pattern that needs more is hostile or broken; the field then counts as wrong
MAX_SCHEMA_BYTES = 200_000
MAX_UNFOLDED = 2_000  # schemas that apply to one value at once, references followed
MAX_EFFORT = 50_000  # schemas that apply to all values of one input; each costs about 10 microseconds at the worst
MAX_ERRORS = 50
MAX_COMPARED = 20_000  # places in the branches of one union, times branches
NUMBER = lazy_pattern(r"[+-]?[0-9]{1,300}(?P<fraction>\.[0-9]{1,300})?(?P<exponent>[eE][+-]?[0-9]{1,3})?")

Path: TypeAlias = tuple[str | int, ...]
Error: TypeAlias = jsonschema_rs.ValidationError
Kind = jsonschema_rs.ValidationErrorKind


class RawTool(Tool[Json], ABC):
    """A tool with a JSON Schema instead of an input model. Its arguments are the checked mapping itself."""

    def __init__(self, name: str, schema: object) -> None:
        check_name(name)
        root = schema.get("type") if isinstance(schema, Mapping) else schema
        if not isinstance(schema, Mapping) or root != "object":
            raise ToolDefinitionError(
                f"The input schema of {name!r} has the root {brief_repr(root)}. It must be of type 'object'."
            )
        self.name = name
        try:
            self._written = to_json(schema)  # ten thousand schemas wait as bytes better than as dicts
            original = from_json(self._written)
        except ValueError as error:
            raise ToolDefinitionError(
                f"The input schema of {name!r} is no JSON: {first_line(error)}. Use plain JSON values."
            ) from error
        if len(self._written) > MAX_SCHEMA_BYTES:
            raise ToolDefinitionError(
                f"The input schema of {name!r} has {len(self._written):,} bytes; "
                f"at most {MAX_SCHEMA_BYTES:,} go to a model. Shorten it."
            )
        self.schema_json = to_json(flatten(original))

    @property
    def input_schema(self) -> Json:
        return flatten(self._original)

    @cached_property
    def _original(self) -> dict[str, Any]:
        schema: dict[str, Any] = from_json(self._written)
        return schema

    @cached_property
    def _branches(self) -> bool:
        return branches(self._original)

    def check_references(self) -> None:
        """Raise ToolDefinitionError if the schema refers to what is not in it, or unfolds without end."""
        if reason := trouble(self._original, MAX_UNFOLDED):
            raise ToolDefinitionError(f"The input schema of {self.name!r} cannot be used: {reason}. Correct it.")

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        self.check_references()
        try:
            return jsonschema_rs.validator_for(
                self._original,
                retriever=_refuse,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKING),
            )
        except ValueError as error:
            reason = cut(first_line(error), 500)
            raise ToolDefinitionError(
                f"The input schema of {self.name!r} cannot be used: {reason}. Correct it."
            ) from error

    def parse(self, raw: Json) -> Json:
        errors = self._errors(raw)
        if not errors:
            return raw
        numbers, _ = _find_numbers(errors)
        if numbers:
            raw = _replace_values(raw, numbers)
            errors = self._errors(raw)
        if errors:
            raise InputError(limit_problems(_sentences(errors, self._original)))
        return raw

    def _errors(self, raw: Json) -> list[Error]:
        try:
            to_json(raw)  # refuses what would crash the validator: endless nesting, lone surrogates
        except PydanticSerializationError as error:
            raise InputError((f"The input is no JSON: {first_line(error)}.",)) from error
        validator = self._validator
        if self._branches and effort(self._original, raw, MAX_EFFORT) > MAX_EFFORT:
            raise InputError(
                (f"The input takes over {MAX_EFFORT:,} checks against its schema. Send less at once, or nest it less.",)
            )
        return list(itertools.islice(validator.iter_errors(raw), MAX_ERRORS))


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri!r} is not fetched")


def _find_numbers(errors: Iterable[Error]) -> tuple[dict[Path, int | float], set[Path]]:
    """
    Numbers that were sent as strings, by their path, and the paths whose type is refused.

    A string that some branch of a union accepts stays a string.
    """
    numbers: dict[Path, int | float] = {}
    refused: set[Path] = set()
    for error in errors:
        path = tuple(error.instance_path)
        match error.kind:
            case Kind.Type(types=types):
                refused.add(path)
                number = as_number(error.instance, whole="number" not in types)
                if number is not None and {"number", "integer"} & set(types):
                    numbers[path] = number
            case Kind.AnyOf(context=unions) | Kind.OneOfNotValid(context=unions):
                if sum(map(len, unions)) * len(unions) > MAX_COMPARED:
                    continue
                parts = [_find_numbers(branch) for branch in unions]
                # in each branch the place itself, or something around it, is refused
                places = {
                    place
                    for _, some in parts
                    for place in some
                    if all(any(place[:size] in each for size in range(len(place) + 1)) for _, each in parts)
                }
                refused |= places
                numbers |= {place: number for found, _ in parts for place, number in found.items() if place in places}
    return numbers, refused


def as_number(text: object, *, whole: bool) -> int | float | None:
    """The finite number that a text spells with plain digits, or None."""
    spelled = NUMBER.fullmatch(text.strip(" \t\r\n")) if isinstance(text, str) else None
    if spelled is None:
        return None
    if not spelled["fraction"] and not spelled["exponent"]:
        return int(spelled[0])
    number = float(spelled[0])
    return number if math.isfinite(number) and not whole else None


def _replace_values(raw: Json, values: Mapping[Path, int | float]) -> Json:
    changed = copy.deepcopy(dict(raw))
    for path, value in values.items():
        node: Any = changed
        for part in path[:-1]:
            node = node[part]
        node[path[-1]] = value
    return changed


def _sentences(errors: Iterable[Error], schema: Json) -> Iterable[str]:
    for error in errors:
        path = [str(part) for part in error.instance_path]
        match error.kind:
            case Kind.Required(property=name):
                yield missing_field([*path, name])
            case Kind.AdditionalProperties(unexpected=names) | Kind.UnevaluatedProperties(unexpected=names):
                for name in names:
                    yield unexpected_field([*path, name], () if path else schema.get("properties", ()))
            case _:
                yield f"{where(path)} is wrong: {cut(error.message, 300)}."
