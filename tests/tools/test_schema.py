"""From models to schemas, and from bad inputs to sentences a model can act on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, field_validator, model_validator

from handrail.errors import InputError, ToolDefinitionError
from handrail.tools.schema import Input, model_schema, parse_model
from handrail.tools.wording import MAX_PROBLEMS, brief_repr, did_you_mean


class Colour(Enum):
    RED = "red"


class Corner(Input):
    x: float
    y: float = 0


class Cat(Input):
    kind: Literal["cat"]
    lives: int


class Dog(Input):
    kind: Literal["dog"]


class Shape(Input):
    """A shape."""

    title: str = "untitled"
    sides: int = Field(default=3, ge=3, description="How many sides.")
    corners: list[Corner] = Field(default=[])
    colour: Colour = Colour.RED
    label: int | str | None = None
    opacity: float = 1.0
    meta: dict[str, int] = Field(default={"title": 1}, examples=[{"title": 2}])
    pet: Cat | Dog | None = Field(default=None, discriminator="kind")
    path_name: str = Field(default="", alias="pathName")

    @field_validator("title")
    @classmethod
    def _no_shouting(cls, value: str) -> str:
        if value.isupper():
            raise ValueError("do not shout")
        return value

    @model_validator(mode="after")
    def _enough_corners(self) -> Shape:
        if self.corners and len(self.corners) != self.sides:
            raise AssertionError("corners and sides differ")
        return self


def problems(model: type[BaseModel], raw: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        parse_model(model, raw)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


@pytest.mark.proves("A7", "A8")
def test_titles_are_stripped_but_a_field_called_title_and_values_survive() -> None:
    schema = model_schema(Shape)

    assert schema["properties"]["title"] == {"type": "string", "default": "untitled"}
    assert schema["properties"]["sides"] == {
        "type": "integer",
        "default": 3,
        "minimum": 3,
        "description": "How many sides.",
    }
    assert schema["properties"]["meta"]["default"] == {"title": 1}
    assert schema["properties"]["meta"]["examples"] == [{"title": 2}]
    assert "description" not in schema
    assert schema["$defs"]["Corner"] == {
        "type": "object",
        "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0}},
        "required": ["x"],
        "additionalProperties": False,
    }


class Properties(Input):
    title: str
    properties: str


def test_fields_may_be_named_like_words_of_the_schema() -> None:
    assert list(model_schema(Properties)["properties"]) == ["title", "properties"]


class Tree(Input):
    name: str
    children: list[Tree] = Field(default=[])


def test_a_model_that_refers_to_itself_still_has_an_object_at_its_root() -> None:
    schema = model_schema(Tree)

    assert schema["type"] == "object"
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert "Tree" in schema["$defs"]
    assert "$ref" not in schema
    assert parse_model(Tree, {"name": "a", "children": [{"name": "b"}]}).children[0].name == "b"


class Numbers(RootModel[list[int]]):
    pass


class Uncallable(BaseModel):
    action: Callable[[], None]


@pytest.mark.parametrize(
    ("model", "problem"),
    [(Numbers, "An input must be an object"), (Uncallable, "Uncallable cannot be described to a model")],
)
def test_a_model_that_is_no_object_cannot_be_an_input(model: type[BaseModel], problem: str) -> None:
    with pytest.raises(ToolDefinitionError, match=problem):
        model_schema(model)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param({"sides": "5"}, {"sides": 5}, id="a numeric string for an integer"),
        pytest.param({"opacity": "0.5"}, {"opacity": 0.5}, id="a numeric string for a number"),
        pytest.param({"meta": {"a": "1"}}, {"meta": {"a": 1}}, id="inside a mapping"),
        pytest.param({"label": "5"}, {"label": "5"}, id="never where a string is allowed"),
    ],
)
def test_a_numeric_string_counts_as_a_number_where_a_number_is_wanted(
    raw: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert parse_model(Shape, raw).model_dump(exclude_unset=True) == expected


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-inf", "", "five", "0x10"])
def test_a_word_is_no_number(word: str) -> None:
    assert "'opacity' is wrong" in problems(Shape, {"opacity": word})[0]


@pytest.mark.proves("R12")
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(
            {"sides": 2}, ["The field 'sides' is wrong: it should be greater than or equal to 3; got 2."], id="a bound"
        ),
        pytest.param(
            {"corners": [{"y": 1}, {"x": "left"}]},
            [
                "The required field 'corners.0.x' is missing.",
                (
                    "The field 'corners.1.x' is wrong: it should be a valid number, "
                    "unable to parse string as a number; got 'left'."
                ),
            ],
            id="nested fields are named with their way",
        ),
        pytest.param(
            {"label": [1]},
            ["The field 'label' is wrong: it should be a valid integer, or it should be a valid string; got [1]."],
            id="a union is one field",
        ),
        pytest.param(
            {"colour": "blue"}, ["The field 'colour' is wrong: it should be 'red'; got 'blue'."], id="a choice"
        ),
        pytest.param(
            {"corners": [5]}, ["The field 'corners.0' is wrong: it should be an object; got 5."], id="a model's name"
        ),
        pytest.param({"meta": 5}, ["The field 'meta' is wrong: it should be an object; got 5."], id="a mapping"),
        pytest.param(
            {"pet": {"kind": "cat", "lives": "many"}},
            [
                (
                    "The field 'pet.lives' is wrong: it should be a valid integer, "
                    "unable to parse string as an integer; got 'many'."
                )
            ],
            id="the tag of a union is no field",
        ),
        pytest.param({"title": "HEY"}, ["The field 'title' is wrong: do not shout; got 'HEY'."], id="a validator"),
        pytest.param(
            {"corners": [{"x": 1}]},
            ["The input is wrong: corners and sides differ; got {'corners': [{'x': 1}]}."],
            id="the whole input",
        ),
        pytest.param({"pathname": "x"}, ["The field 'pathname' is unexpected. Did you mean 'pathName'?"], id="a typo"),
        pytest.param(
            {"corners": [{"x": 1, "tilte": 2}], "sides": 3},
            ["The field 'corners.0.tilte' is unexpected. Known fields: x, y."],
            id="no hint from another level",
        ),
        pytest.param(
            {"zzz": 1},
            [
                (
                    "The field 'zzz' is unexpected. Known fields: title, sides, corners, colour, label, opacity, meta, "
                    "pet, pathName."
                )
            ],
            id="no near name",
        ),
    ],
)
def test_every_problem_is_a_sentence_without_words_of_the_validator(raw: dict[str, Any], expected: list[str]) -> None:
    assert list(problems(Shape, raw)) == expected


def test_all_problems_are_told_at_once_each_naming_its_field() -> None:
    told = problems(Shape, {"sides": "many", "opacity": [], "titel": "x", "corners": [{}]})

    assert [sentence.split("'")[1] for sentence in told] == ["corners.0.x", "titel", "sides", "opacity"]


def test_a_flood_of_problems_is_cut() -> None:
    told = problems(Shape, {"corners": [{} for _ in range(500)]})

    assert len(told) == MAX_PROBLEMS + 1
    assert told[-1] == "And 470 more problems of this kind."


def test_endless_nesting_is_a_problem_and_not_a_crash() -> None:
    raw: dict[str, Any] = {"name": "leaf"}
    for _ in range(100_000):
        raw = {"name": "x", "children": [raw]}

    (problem,) = problems(Tree, raw)
    assert "it is nested too deeply" in problem
    assert len(problem) < 10_000


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_value_gives_an_input_or_bounded_sentences(value: Any) -> None:
    for raw in ({"corners": value, "label": value, "pet": value}, {"sides": value, "meta": value}):
        with contextlib.suppress(InputError):
            parse_model(Shape, raw)
            continue
        told = problems(Shape, raw)
        assert all(sentence.endswith((".", "?")) for sentence in told)
        assert len("".join(told)) < 50_000


def test_words_in_messages_are_bounded_and_hints_are_near() -> None:
    assert brief_repr("x" * 500) == f"'{'x' * 99}... (502 characters)"
    assert did_you_mean("Raed", ["Read", "Write"]) == " Did you mean 'Read'?"
    assert did_you_mean("zzz", ["Read"]) == ""
