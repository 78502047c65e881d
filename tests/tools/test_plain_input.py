"""Inputs of built-in tools: what is taken without Pydantic is what Pydantic takes, and the rest is left to it."""

import inspect
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.table import base_tools
from handrail.errors import InputError
from handrail.session.services import default_services
from handrail.tools.catalog import Catalog
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.pool import Ingredients
from handrail.tools.schema import Input, model_schema, parse_model, parse_plain, pydantic_model
from handrail.tools.stub import load_tool


def _built_in_inputs() -> list[type[PlainInput]]:
    entries = base_tools(lambda: Catalog(Ingredients(entries=())), lambda: default_services({}))
    models = [load_tool(entry.load()).input_model for entry in entries]
    return [model for model in models if issubclass(model, PlainInput)]


class Item(PlainInput):
    """One of several."""

    name: str = Field(min_length=1, max_length=5)
    count: int = 1


class Everything(PlainInput):
    """All kinds of fields."""

    text: str = Field(max_length=4)
    number: float = Field(default=1, gt=0, le=600)
    whole: int | None = Field(default=None, ge=0)
    after: int = Field(default=0, ge=0, alias="-A")
    on: bool = False
    items: list[Item] = Field(default=[], max_length=2)
    names: list[str] | None = None
    more: dict[str, Any] | None = None
    id: str = Field(default="", coerce_numbers_to_str=True)


MODELS: list[type[PlainInput]] = [Everything, *_built_in_inputs()]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 700)
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "a", "5", "3.5", "true", "replace", "content", "pending", "\ud800", "ä", "x" * 60])
    | st.text(st.characters(codec=None), max_size=6)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "count", "content", "status", "activeForm", "\udc80"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def _outcome(parse: Any, raw: dict[str, Any]) -> Any:
    try:
        return _plain(parse(raw))
    except InputError as error:
        return str(error)


def _plain(value: Any) -> Any:
    """Values with their types: 1, 1.0 and True are different inputs of a tool."""
    if isinstance(value, PlainInput | Input):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return type(value), repr(value)


@given(st.data())
def test_every_input_is_taken_or_refused_as_pydantic_would(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(MODELS))
    names = [each.alias for each in model.model_fields.values()]
    raw = data.draw(st.dictionaries(st.sampled_from([*names, "other"]), VALUES, max_size=len(names) + 1))

    ours = _outcome(lambda given: model.take(given) or parse_plain(model, given), raw)
    assert ours == _outcome(lambda given: parse_model(pydantic_model(model), given), raw)


def test_an_input_is_frozen_compared_by_value_and_made_with_its_defaults() -> None:
    one = Everything(text="a", items=[{"name": "x"}])  # type: ignore[list-item]  # as a model writes it

    assert one == Everything.take({"text": "a", "items": [{"name": "x", "count": 1}]})
    assert one.items == [Item(name="x")]
    assert repr(Item(name="x")) == "Item(name='x', count=1)"
    with pytest.raises(AttributeError, match="Everything is frozen, so 'text' cannot be changed"):
        one.text = "b"  # type: ignore[misc]
    with pytest.raises(TypeError, match="are not values of Item"):
        Item(name="")


def test_a_hypothetical_input_may_lack_fields() -> None:
    made = Everything.model_construct(on=True)

    assert (made.on, made.number, inspect.getattr_static(made, "text", None)) == (True, 1, None)


class Choice(PlainInput):
    place: str
    mode: Literal["", "fast", "safe"] = ""
    limit: int | None = Field(default=None, gt=0, description="How many.")
    lines: int = 0
    count: int = 5


def test_a_request_says_nothing_of_defaults_that_are_empty() -> None:
    assert model_schema(Choice)["properties"] == {
        "place": {"type": "string"},
        "mode": {"enum": ["fast", "safe"], "type": "string"},
        "limit": {"exclusiveMinimum": 0, "type": "integer", "description": "How many."},
        "lines": {"type": "integer"},
        "count": {"default": 5, "type": "integer"},
    }


def test_empty_defaults_are_accepted_all_the_same() -> None:
    raw = {"place": "x", "mode": "", "limit": None, "lines": 0}

    assert parse_plain(Choice, raw) == Choice(place="x")
    assert Choice.take(raw) == Choice(place="x")
