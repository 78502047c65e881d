"""JSON of whatever a run holds."""

from typing import Any

from pydantic_core import PydanticSerializationError, to_json


def json_bytes(value: Any) -> bytes:
    """The value as JSON. Halves of characters, which models and file names bring, become U+FFFD; odd numbers null."""
    try:
        return to_json(value, inf_nan_mode="null", fallback=str)
    except PydanticSerializationError:
        return to_json(_whole_characters(value), inf_nan_mode="null", fallback=str)


def _whole_characters(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole_characters(name): _whole_characters(each) for name, each in value.items()}
        case list() | tuple():
            return [_whole_characters(each) for each in value]
        case _:
            return value
