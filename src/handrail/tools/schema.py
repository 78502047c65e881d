"""Pydantic models as JSON Schemas for the model, and validation errors as sentences it can act on."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import to_json

from handrail.conversation.blocks import Json
from handrail.errors import InputError, ToolDefinitionError
from handrail.tools.plain_input import PlainInput
from handrail.tools.wording import brief_repr, first_line, limit_problems, missing_field, unexpected_field, where

Model = TypeVar("Model", bound=BaseModel)
Plain = TypeVar("Plain", bound=PlainInput)

INPUT_CONFIG = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())
_MODELS: dict[type[PlainInput], type["Input"]] = {}
HOLDS_NAMES = frozenset({"properties", "$defs"})
HOLDS_VALUES = frozenset({"default", "examples", "enum", "const"})
IN_PLAIN_WORDS = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dataclass_type", "dict_type"), "it should be an object"),
    **dict.fromkeys(("recursion_loop", "recursion_depth_exceeded"), "it is nested too deeply"),
}
UNEXPECTED = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
"""An unknown field: of a model, and of a dataclass."""
FIRST_WORDS = re.compile(r"^(?:Input|String|List|Dictionary) should")


class Input(BaseModel):
    """Base of input models: an unknown field is an error."""

    model_config = INPUT_CONFIG


def pydantic_model(plain: type[PlainInput]) -> type[Input]:
    """The Pydantic model with the fields of an input of ours."""
    known = _MODELS.get(plain)
    if known is None:
        fields: dict[str, Any] = {}
        for name, each in plain.model_fields.items():
            options: dict[str, Any] = {**each.options, **({} if each.alias == name else {"alias": each.alias})}
            fields[name] = (_pydantic_type(each.kind), Field(default=each.default, **options))
        known = _MODELS[plain] = create_model(plain.__name__, __base__=Input, **fields)
    return known


def _pydantic_type(kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, PlainInput):
        return pydantic_model(kind)
    return list[_pydantic_type(get_args(kind)[0])] if get_origin(kind) is list else kind  # type: ignore[misc]


def model_schema(model: type[BaseModel] | type[PlainInput]) -> dict[str, Any]:
    """
    The JSON Schema of an input model, without the titles that only cost tokens.

    Raises:
        ToolDefinitionError: the model has no schema, or its schema is not that of an object.
    """
    is_plain = issubclass(model, PlainInput)
    described = pydantic_model(model) if issubclass(model, PlainInput) else model
    try:
        schema: dict[str, Any] = _without_titles(described.model_json_schema())
    except PydanticUserError as error:
        raise ToolDefinitionError(
            f"{model.__name__} cannot be described to a model: {first_line(error)}. Use plain types."
        ) from error
    if "$ref" in schema:  # a model that refers to itself
        schema = schema["$defs"][schema.pop("$ref").rpartition("/")[2]] | schema
    if schema.get("type") != "object":
        raise ToolDefinitionError(
            f"{model.__name__} describes {schema.get('type')!r}. An input must be an object: give a model with fields."
        )
    schema.pop("description", None)
    schema.setdefault("properties", {})
    schema.setdefault("additionalProperties", False)
    return _without_empty_defaults(schema) if is_plain else schema


def schema_bytes(schema: Json) -> bytes:
    """The schema as it is sent: always the same bytes."""
    return to_json(schema)


def _without_titles(node: Any, *, names: bool = False) -> Any:
    """`names` marks a mapping from property names, where `title` is a field of the tool and stays."""
    match node:
        case dict():
            return {
                key: value
                if key in HOLDS_VALUES and not names
                else _without_titles(value, names=key in HOLDS_NAMES and not names)
                for key, value in node.items()
                if names or key != "title"
            }
        case list():
            return [_without_titles(item) for item in node]
        case _:
            return node


def _without_empty_defaults(node: Any, *, names: bool = False) -> Any:
    """Of a field that may be left out, null and an empty value say nothing: they only cost tokens."""
    match node:
        case dict() if not names and not node.get("default", True):
            rest = {key: value for key, value in node.items() if key not in {"default", "anyOf"}}
            kinds = [kind for kind in node.get("anyOf", ()) if kind != {"type": "null"}]
            rest = kinds[0] | rest if len(kinds) == 1 else rest | ({"anyOf": kinds} if kinds else {})
            if "enum" in rest:
                rest["enum"] = [value for value in rest["enum"] if value != node["default"]]
            return _without_empty_defaults(rest)
        case dict():
            return {
                key: value
                if key in HOLDS_VALUES and not names
                else _without_empty_defaults(value, names=key in HOLDS_NAMES and not names)
                for key, value in node.items()
            }
        case list():
            return [_without_empty_defaults(item) for item in node]
        case _:
            return node


def parse_model(model: type[Model], raw: Json) -> Model:
    """
    The checked input. A numeric string counts as a number where a number is wanted.

    Raises:
        InputError: with one sentence per wrong field, all at once.
    """
    try:
        return model.__pydantic_validator__.validate_python(raw)  # type: ignore[no-any-return]  # the model's own
    except ValidationError as error:
        raise InputError(limit_problems(_sentences(error, model, raw))) from error


def parse_plain(plain: type[Plain], raw: Json) -> Plain:
    """The checked input of a built-in tool, converted where it can be; InputError as from `parse_model`."""
    return plain.from_pydantic(vars(parse_model(pydantic_model(plain), raw)))


def _sentences(error: ValidationError, model: type[BaseModel], raw: Json) -> Iterable[str]:
    wrong: dict[tuple[str, ...], list[str]] = {}
    values: dict[tuple[str, ...], object] = {}
    for problem in error.errors(include_url=False, include_context=False):
        missing = problem["type"] == "missing"
        path = _path(problem["loc"], raw, missing=missing)
        if missing:
            yield missing_field(path)
        elif problem["type"] in UNEXPECTED:
            yield unexpected_field(path, _fields_beside(path, model))
        else:
            wrong.setdefault(path, []).append(IN_PLAIN_WORDS.get(problem["type"]) or _plain(problem["msg"]))
            values.setdefault(path, problem["input"])
    for path, reasons in wrong.items():
        yield f"{where(path)} is wrong: {', or '.join(dict.fromkeys(reasons))}; got {brief_repr(values[path])}."


def _fields_beside(path: Sequence[str], model: type[BaseModel]) -> list[str]:
    """The names that may be where the path ends, in all forms that its object may have."""
    schema = model.model_json_schema()
    nodes = _forms(schema, schema)
    for part in path[:-1]:
        inner = [node.get("properties", {}).get(part) or node.get("items") for node in nodes]
        nodes = [form for each in inner if isinstance(each, dict) for form in _forms(each, schema)]
    return [name for node in nodes for name in node.get("properties", ())]


def _forms(node: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schemas of a union and behind references; a schema by itself otherwise."""
    if "$ref" in node:
        return _forms(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    return [form for each in node["anyOf"] for form in _forms(each, schema)] if "anyOf" in node else [node]


def _path(loc: Sequence[str | int], raw: object, *, missing: bool) -> tuple[str, ...]:
    """The path of the problem in the input, without Pydantic's own parts of a location, such as union members."""
    path: list[str] = []
    node = raw
    for at, part in enumerate(loc):
        if (isinstance(node, dict) and part in node) or (
            isinstance(node, list) and isinstance(part, int) and part < len(node)
        ):
            node = node[part]  # type: ignore[index]  # the key of a dict, or the index of a list
            path.append(str(part))
        elif missing and at == len(loc) - 1:
            path.append(str(part))
    return tuple(path)


def _plain(message: str) -> str:
    for jargon in ("Value error, ", "Assertion failed, "):
        message = message.removeprefix(jargon)
    return FIRST_WORDS.sub("it should", message.replace(" after validation", "", 1))
