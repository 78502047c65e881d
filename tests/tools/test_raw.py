"""Tools described by a JSON Schema that somebody else wrote."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import InputError, ToolDefinitionError
from handrail.tools import raw
from handrail.tools.raw import MAX_SCHEMA_BYTES, RawTool, as_number
from handrail.tools.tool import PromptView
from handrail.tools.untrusted_schema import flatten, unfolding


class Foreign(RawTool):
    """A tool of a server."""

    def prompt(self, view: PromptView) -> str:
        return "Foreign."


def tool(properties: Any, **root: Any) -> Foreign:
    return Foreign("mcp__srv__t", {"type": "object", "properties": properties, **root})


def problems(tool: RawTool, raw: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        tool.parse(raw)
    return caught.value.problems


NUMBER, INTEGER, STRING = {"type": "number"}, {"type": "integer"}, {"type": "string"}
OPTIONAL = {"anyOf": [INTEGER, {"type": "null"}]}
EVERYTHING = {
    "i": INTEGER,
    "n": NUMBER,
    "s": STRING,
    "either": {"type": ["number", "string"]},
    "maybe": OPTIONAL,
    "maybe_list": {"oneOf": [{"type": "array", "items": INTEGER}, {"type": "boolean"}]},
    "word_or_number": {"anyOf": [{"type": "string", "minLength": 5}, NUMBER]},
    "deep": {"type": "object", "properties": {"list": {"type": "array", "items": NUMBER}}},
    "small": {"type": "integer", "maximum": 10},
    "tagged": {
        "anyOf": [
            {"type": "object", "properties": {"n": NUMBER}},
            {"type": "object", "properties": {"n": STRING}, "required": ["other"]},
        ]
    },
}


@pytest.mark.proves("A6", "P2")
def test_the_schema_goes_out_as_it_came_and_checks_the_input() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "title": "N"}}, "required": ["n"]}
    foreign = Foreign("mcp__srv__t", schema)

    assert foreign.input_schema == schema
    assert json.loads(foreign.schema_json) == schema
    assert foreign.parse({"n": 1, "more": True}) == {"n": 1, "more": True}
    assert problems(foreign, {}) == ("The required field 'n' is missing.",)


def test_a_schema_that_its_owner_changes_later_does_not_change_the_tool() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    foreign = Foreign("t", schema)
    schema["type"] = "array"
    schema["properties"]["a"] = True

    assert json.loads(foreign.schema_json) == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param({"i": "5"}, {"i": 5}, id="integer"),
        pytest.param({"i": " -7 "}, {"i": -7}, id="sign and spaces"),
        pytest.param({"n": "2"}, {"n": 2}, id="a whole number stays whole"),
        pytest.param({"n": "2.5e1"}, {"n": 25.0}, id="fraction and exponent"),
        pytest.param({"maybe": "3"}, {"maybe": 3}, id="an optional integer"),
        pytest.param({"maybe_list": ["1", 2, "3"]}, {"maybe_list": [1, 2, 3]}, id="a list in a union"),
        pytest.param({"deep": {"list": ["1.5", 2]}}, {"deep": {"list": [1.5, 2]}}, id="deep in lists and objects"),
        pytest.param({"s": "5"}, {"s": "5"}, id="a string stays"),
        pytest.param({"either": "5"}, {"either": "5"}, id="a string stays where a string is allowed"),
    ],
)
def test_a_numeric_string_becomes_a_number_where_the_schema_wants_one(
    raw: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = json.dumps(raw)

    parsed = tool(EVERYTHING).parse(raw)

    assert parsed == expected
    assert json.dumps(parsed) == json.dumps(expected), "1 and 1.0 and True are equal, but not the same"
    assert json.dumps(raw) == before, "the request itself is not changed"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({"n": "NaN"}, id="NaN"),
        pytest.param({"n": "Infinity"}, id="Infinity"),
        pytest.param({"n": "1e999"}, id="a number that is infinite as a float"),
        pytest.param({"n": "1_000"}, id="underscores"),
        pytest.param({"n": "0x10"}, id="hexadecimal"),
        pytest.param({"n": "٣"}, id="digits of another script"),
        pytest.param({"n": "9" * 5000}, id="more digits than Python takes"),
        pytest.param({"n": True}, id="a boolean"),
        pytest.param({"n": ""}, id="nothing"),
        pytest.param({"i": "5.5"}, id="a fraction for an integer"),
        pytest.param({"word_or_number": "12"}, id="a string is allowed, only not this one"),
        pytest.param({"tagged": {"n": "5"}}, id="one part of the union takes a string there"),
        pytest.param({"small": "11"}, id="a number that is still out of bounds"),
    ],
)
def test_nothing_else_becomes_a_number(raw: dict[str, Any]) -> None:
    assert problems(tool(EVERYTHING), raw)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30))
def test_every_finite_number_survives_being_written_as_a_string(number: float) -> None:
    assert tool(EVERYTHING).parse({"n": json.dumps(number)}) == {"n": number}


@given(st.text() | st.from_regex(r"[+-]?[0-9_.eE+-]*"))
def test_a_text_that_is_a_number_is_the_number_python_sees_in_it(text: str) -> None:
    number = as_number(text, whole=False)
    assert number is None or (number == float(text) and math.isfinite(number) and "_" not in text)
    assert as_number(text, whole=True) in {None, number}


def test_all_problems_are_told_at_once_each_naming_its_field() -> None:
    foreign = tool(EVERYTHING, required=["must"], additionalProperties=False)

    assert sorted(problems(foreign, {"i": [], "deep": {"list": ["x"]}, "smal": 1, "maybe": "x"})) == [
        'The field \'deep.list.0\' is wrong: "x" is not of type "number".',
        "The field 'i' is wrong: [] is not of type \"integer\".",
        "The field 'maybe' is wrong: \"x\" is not valid under any of the schemas listed in the 'anyOf' keyword.",
        "The field 'smal' is unexpected. Did you mean 'small'?",
        "The required field 'must' is missing.",
    ]


def test_a_flood_of_problems_and_huge_values_are_cut() -> None:
    told = problems(
        tool({"list": {"type": "array", "items": NUMBER}}), {"list": [f"{n} {'x' * 10_000}" for n in range(99)]}
    )

    assert len(told) == 31
    assert len("".join(told)) < 15_000


@pytest.mark.proves("A6")
@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(True, id="a boolean"),
        pytest.param(None, id="nothing"),
        pytest.param([], id="a list"),
        pytest.param({}, id="no type"),
        pytest.param({"type": "array"}, id="another type"),
        pytest.param({"type": ["object", "null"]}, id="perhaps another type"),
        pytest.param({"anyOf": [{"type": "object"}]}, id="alternatives without a type"),
    ],
)
def test_the_root_must_be_an_object(schema: object) -> None:
    with pytest.raises(ToolDefinitionError, match="It must be of type 'object'"):
        Foreign("t", schema)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        pytest.param(nested(100_000), "depth", id="deeply nested"),
        pytest.param(
            {"type": "object", "description": "x" * MAX_SCHEMA_BYTES}, "at most 200,000 go to a model", id="huge"
        ),
        pytest.param({"type": "object", "default": "\ud800"}, "is no JSON", id="not to be encoded"),
    ],
)
def test_a_schema_that_cannot_go_to_a_model_is_refused_at_once(schema: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolDefinitionError, match=problem):
        Foreign("t", schema)


def test_a_name_that_no_api_accepts_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="cannot be called 'a b'"):
        Foreign("a b", {"type": "object"})


def doubling(*words: str, at: str = "#/$defs/d") -> dict[str, Any]:
    """Forty definitions that each name the next one twice or more."""
    definitions: dict[str, Any] = {"d40": STRING}
    for number in range(40):
        after = {"$ref": f"{at}{number + 1}"}
        twice = {"dependentSchemas": {"a": after, "x": after}, "allOf": [after, after], "anyOf": [after, after]}
        definitions[f"d{number}"] = {word: twice.get(word, after) for word in words}
    return {"$defs": definitions, "properties": {"x": {"$ref": "#/$defs/d0"}}}


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        pytest.param(
            {"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, "only references such as", id="a remote reference"
        ),
        pytest.param({"$ref": "file:///etc/hostname"}, "only references such as", id="a file reference"),
        pytest.param(
            {"$id": "http://h/a", "properties": {"a": {"$ref": "b"}}}, "only references such as", id="a relative one"
        ),
        pytest.param({"$schema": "http://127.0.0.1:9/s"}, "Unknown meta-schema", id="a strange dialect"),
        pytest.param(
            {"properties": {"a": {"$ref": "#/$defs/no"}}}, "only references such as", id="a reference to nothing"
        ),
        pytest.param({"$dynamicRef": "#node"}, "only references such as", id="a reference that depends"),
        pytest.param({"properties": {"a": {"$id": "http://h/a"}}}, "an address of their own", id="an address inside"),
        pytest.param(
            {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"id": "http://h/a"}}},
            "an address of their own",
            id="an address of an old dialect",
        ),
        pytest.param({"$defs": {"a": {"$anchor": "a"}}}, "an address of their own", id="an anchor"),
        pytest.param({"properties": 5}, "cannot be used", id="no schema at all"),
        pytest.param({"properties": {"a": {"pattern": "["}}}, "is not a", id="a broken pattern"),
        pytest.param(
            {"properties": {"a": {"pattern": "(?:a{1000}){1000}"}}}, "is not a", id="a pattern too big to hold"
        ),
        pytest.param(doubling("allOf"), "multiplies without end", id="a schema that doubles at every step"),
        pytest.param(doubling("anyOf"), "multiplies without end", id="also with alternatives"),
        pytest.param(doubling("allOf", at="#/%24defs/d"), "multiplies without end", id="also in another spelling"),
        pytest.param(doubling("dependentSchemas"), "multiplies without end", id="also when a field is there"),
        pytest.param(doubling("if", "then", "else"), "multiplies without end", id="also in conditions"),
        pytest.param(
            {"$defs": {"d1500": True} | {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in reversed(range(1500))}},
            "multiplies without end",
            id="a chain without end",
        ),
    ],
)
def test_a_hostile_schema_is_never_followed_and_says_why(parts: dict[str, Any], problem: str) -> None:
    hostile = Foreign("t", {"type": "object", **parts})

    for _ in range(2):
        with pytest.raises(ToolDefinitionError, match=problem):
            hostile.parse({"a": "x", "x": "y"})


@pytest.mark.parametrize("unseen", [False, True])
def test_a_reference_to_a_file_does_not_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unseen: bool) -> None:
    (tmp_path / "schema.json").write_text('{"type": "string"}')
    if unseen:  # the validator itself would not fetch it either
        monkeypatch.setattr(raw, "trouble", lambda schema, limit: "")

    with pytest.raises(ToolDefinitionError, match="is not fetched" if unseen else "only references such as"):
        tool({"a": {"$ref": (tmp_path / "schema.json").as_uri()}}).parse({"a": 5})


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(\w+\s?)*$(?!x)", r"(a*)*b\1"])
def test_a_catastrophic_pattern_ends_soon_and_counts_as_wrong(pattern: str) -> None:
    foreign = tool({"a": {"pattern": pattern}, "fine": {"pattern": "^b+$"}})

    (problem,) = problems(foreign, {"a": "a" * 50_000 + "!", "fine": "b"})
    assert problem.startswith("The field 'a' is wrong")


def test_a_schema_may_refer_to_itself() -> None:
    tree = Foreign(
        "t",
        {
            "type": "object",
            "properties": {"size": INTEGER, "children": {"type": "array", "items": {"$ref": "#"}}},
            "additionalProperties": False,
        },
    )

    assert tree.parse({"children": [{"size": "1"}, {"children": []}]}) == {"children": [{"size": 1}, {"children": []}]}
    assert problems(tree, {"children": [{"siez": 1}]}) == ("The field 'children.0.siez' is unexpected. Leave it out.",)


@pytest.mark.parametrize(
    "reference", ["#/$defs/n", "#/%24defs/n", "#/properties/list/prefixItems/0", "#/$defs/odd~1name"]
)
def test_every_way_to_point_into_the_document_is_followed(reference: str) -> None:
    foreign = tool(
        {"a": {"$ref": reference}, "list": {"prefixItems": [INTEGER]}}, **{"$defs": {"n": INTEGER, "odd/name": INTEGER}}
    )

    assert foreign.parse({"a": "5"}) == {"a": 5}


@pytest.mark.parametrize(
    "reference", ["#/properties/list/prefixItems/9", "#/properties/list/prefixItems/x", "##", "a#"]
)
def test_a_pointer_to_nowhere_is_refused(reference: str) -> None:
    with pytest.raises(ToolDefinitionError, match="only references such as"):
        tool({"a": {"$ref": reference}, "list": {"prefixItems": [INTEGER]}}).parse({})


def test_boolean_schemas_of_fields_are_fine() -> None:
    foreign = tool({"any": True, "none": False})

    assert foreign.parse({"any": [1]}) == {"any": [1]}
    assert "'none' is wrong" in problems(foreign, {"none": 1})[0]


@pytest.mark.parametrize("levels", [1_000, 100_000])
def test_an_input_nested_without_end_is_refused_and_does_not_crash(levels: int) -> None:
    raw: dict[str, Any] = {}
    for _ in range(levels):
        raw = {"a": raw}

    assert "The input is no JSON" in problems(tool({"a": {"$ref": "#"}}), raw)[0]


def test_an_input_that_cannot_be_encoded_is_refused() -> None:
    assert "surrogates not allowed" in problems(tool({}), {"a": "\ud800"})[0]


ROOT_UNION = {
    "type": "object",
    "properties": {"id": STRING},
    "required": ["id"],
    "anyOf": [
        {"properties": {"a": INTEGER, "both": STRING}, "required": ["a", "both"]},
        {"$ref": "#/$defs/other"},
    ],
    "allOf": [{"properties": {"always": NUMBER}, "required": ["always"]}, True],
    "$defs": {"other": {"properties": {"b": INTEGER, "id": INTEGER}, "required": ["both", "b"]}},
}


def test_combinations_at_the_root_are_flattened_for_the_model_and_still_checked() -> None:
    foreign = Foreign("t", ROOT_UNION)

    assert foreign.input_schema == {
        "type": "object",
        "properties": {"id": STRING, "a": INTEGER, "both": STRING, "b": INTEGER, "always": NUMBER},
        "required": ["id", "always", "both"],
        "$defs": ROOT_UNION["$defs"],
    }
    assert foreign.parse({"id": "x", "a": 1, "both": "y", "always": 1})
    assert problems(foreign, {"id": "x", "both": "y", "always": 1})


@pytest.mark.parametrize(
    "parts",
    [
        {"anyOf": []},
        {"anyOf": {"a": 1}},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"oneOf": [5, {"properties": 7, "required": "x"}], "required": 3, "properties": []},
        {"anyOf": [{"$ref": 5}, {"$ref": "#/a/b"}, {"$ref": "http://h/"}]},
    ],
)
def test_flattening_takes_nothing_for_granted(parts: dict[str, Any]) -> None:
    flat = flatten({"type": "object", **parts})

    assert flat["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf"} & set(flat)


def test_a_schema_whose_types_all_know_each_other_is_not_hostile() -> None:
    names = [f"T{number}" for number in range(30)]
    schema = {
        "type": "object",
        "$defs": {name: {"properties": {other: {"$ref": f"#/$defs/{other}"} for other in names}} for name in names},
        "properties": {"all": {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names]}},
    }

    assert unfolding(schema, 2_000) < 100
    assert Foreign("t", schema).parse({"all": {"T1": {"T2": {}}}})


def deep(levels: int) -> Any:
    value: Any = "a"
    for _ in range(levels):
        value = [value]
    return value


def doubled(levels: int, link: Callable[[str], Any]) -> dict[str, Any]:
    """Definitions that each lead to the next one twice."""
    names = [f"#/$defs/{level}" for level in range(1, levels + 1)]
    definitions: dict[str, Any] = {str(level): {"anyOf": [link(name)] * 2} for level, name in enumerate(names)}
    return {"x": {"$ref": "#/$defs/0"}, "$defs": {**definitions, str(levels): INTEGER}}


ITEMS = {"type": "array", "items": {"$ref": "#/$defs/n"}}
WIDE = {"anyOf": [{"type": "array", "items": INTEGER}] * 300}


@pytest.mark.parametrize(
    ("field", "definitions", "value"),
    [
        pytest.param(
            {"$ref": "#/$defs/0"}, doubled(25, lambda name: {"items": {"$ref": name}})["$defs"], deep(25), id="a chain"
        ),
        pytest.param(
            {"$ref": "#/$defs/0"},
            doubled(25, lambda name: {"additionalProperties": {"$ref": name}, "items": {"$ref": name}})["$defs"],
            deep(25),
            id="a chain of two kinds",
        ),
        pytest.param({"$ref": "#/$defs/n"}, {"n": {"anyOf": [ITEMS, ITEMS]}}, deep(25), id="a circle"),
        pytest.param(WIDE, {}, [str(number) for number in range(1_000)], id="many branches for many items"),
    ],
)
def test_an_input_that_multiplies_with_its_schema_is_refused_before_it_is_checked(
    field: Any, definitions: Any, value: Any
) -> None:
    assert "checks against its schema" in problems(tool({"x": field}, **{"$defs": definitions}), {"x": value})[0]


def test_definitions_that_double_on_the_same_value_are_refused() -> None:
    properties = doubled(25, lambda name: {"$ref": name})
    with pytest.raises(ToolDefinitionError, match="multiplies"):
        tool({"x": properties["x"]}, **{"$defs": properties["$defs"]}).parse({"x": "a"})


def test_a_tree_of_alternatives_of_honest_depth_is_checked() -> None:
    tree = {"anyOf": [INTEGER, {"type": "array", "items": {"$ref": "#/$defs/n"}}, {"type": "null"}]}
    value: Any = 1
    for _ in range(6):
        value = [value, value, None]

    assert tool({"x": {"$ref": "#/$defs/n"}}, **{"$defs": {"n": tree}}).parse({"x": value}) == {"x": value}


def test_only_the_first_errors_of_an_endless_list_are_looked_at() -> None:
    foreign = tool({"x": {"type": "array", "items": INTEGER}})

    assert len(foreign._errors({"x": ["a"] * 5_000})) == raw.MAX_ERRORS
