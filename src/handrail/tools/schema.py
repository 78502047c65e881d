"""From a Pydantic model to the JSON Schema a model sees, and from its errors to sentences a model can act on."""

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from handrail.conversation.blocks import Json
from handrail.errors import InputError

Model = TypeVar("Model", bound=BaseModel)


class Input(BaseModel):
    """Base of our own input models: a field that is not declared is an error, not noise."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def model_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of an input model, without the titles that only cost tokens."""
    schema: dict[str, Any] = _without_titles(model.model_json_schema())
    schema.pop("description", None)
    schema.setdefault("properties", {})
    schema.setdefault("additionalProperties", False)
    return schema


def _without_titles(node: Any, *, names: bool = False) -> Any:
    """`names` marks a mapping from property names, where `title` is somebody's field and stays."""
    match node:
        case dict():
            return {
                key: _without_titles(value, names=key in {"properties", "$defs"} and not names)
                for key, value in node.items()
                if names or key != "title" or not isinstance(value, str)
            }
        case list():
            return [_without_titles(item) for item in node]
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
        raise InputError(tuple(_sentences(error, model))) from error


def _sentences(error: ValidationError, model: type[BaseModel]) -> Iterable[str]:
    known = [field.alias or name for name, field in model.model_fields.items()]
    for problem in error.errors(include_url=False):
        field = ".".join(str(part) for part in problem["loc"])
        match problem["type"]:
            case "missing":
                yield f"The required field {field!r} is missing."
            case "extra_forbidden":
                yield f"The field {field!r} is unexpected.{did_you_mean(field, known)}"
            case _:
                where = f"The field {field!r}" if field else "The input"
                yield f"{where} is wrong: {problem['msg']}; got {shown(problem['input'])}."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint at the nearest known word, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def shown(value: object, limit: int = 100) -> str:
    """A value as it may stand in a message: bounded, and with its type where that is the point."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"
