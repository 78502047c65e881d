"""How an output becomes blocks for the model."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from handrail.conversation.blocks import Document, Image, ResultBlock, Text, ToolReference
from handrail.tools.output import Output, json_text, sendable
from handrail.tools.schema import Input
from handrail.tools.tool import Tool


class Nothing(Input):
    pass


class Plain(Tool[Nothing]):
    name = "Plain"
    input_model = Nothing


class Point(BaseModel):
    x: int


@dataclasses.dataclass
class Place:
    name: str


PICTURE = Image("aGk=", "image/png")
PAPER = Document("aGk=", "application/pdf", "a paper")


@pytest.mark.proves("A27", "A31")
@pytest.mark.parametrize(
    ("output", "blocks"),
    [
        pytest.param(Output(text="hi"), (Text("hi"),), id="text"),
        pytest.param(Output(), (Text(""),), id="nothing"),
        pytest.param(Output(blocks=(PICTURE,)), (PICTURE,), id="an image"),
        pytest.param(Output(text="see", blocks=(PICTURE, PAPER)), (Text("see"), PICTURE, PAPER), id="text comes first"),
        pytest.param(Output(data={"a": [1, None, True]}), (Text('{"a":[1,null,true]}'),), id="data as JSON"),
        pytest.param(Output(data=[]), (Text("[]"),), id="empty data is data"),
        pytest.param(Output(data=0), (Text("0"),), id="zero is data"),
        pytest.param(Output(data={"a": 1}, text="one"), (Text("one"),), id="data beside text is for programs"),
        pytest.param(
            Output(data=["T"], blocks=(ToolReference("T"),)), (ToolReference("T"),), id="data beside blocks is too"
        ),
        pytest.param(Output(text="a\udcff"), (Text("a\\udcff"),), id="a lone surrogate is written out"),
        pytest.param(Output(blocks=(Text("\ud800"),)), (Text("\\ud800"),), id="in blocks too"),
        pytest.param(Output(text="snow ☃ 😀"), (Text("snow ☃ 😀"),), id="other characters stay"),
    ],
)
def test_an_output_maps_to_blocks(output: Output, blocks: tuple[ResultBlock, ...]) -> None:
    assert Plain().result_blocks(output) == blocks


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (Point(x=1), '{"x":1}'),
        (Place("here"), '{"name":"here"}'),
        ({"raw": b"\xff\x00"}, '{"raw":"_wA="}'),
        ([float("nan"), float("inf")], '["NaN","Infinity"]'),
        ({1: {2}}, '{"1":[2]}'),
        (["a\udcff"], '["a\\udcff"]'),
    ],
)
def test_any_data_becomes_json(data: object, text: str) -> None:
    assert json_text(data) == text
    json.loads(text)


def test_what_json_has_no_word_for_is_told_by_its_str() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd one"

    assert json_text([Odd()]) == '["odd one"]'
    assert json_text([Odd(), "\ud800"]) == '["odd one", "\\ud800"]'


JSON_LIKE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=settings().max_examples // 2)
@given(JSON_LIKE, st.text(st.characters(codec=None)))
def test_whatever_a_tool_returns_can_be_encoded(data: object, text: str) -> None:
    for output in (Output(data=data), Output(text=text)):
        for block in Plain().result_blocks(output):
            assert isinstance(block, Text)
            block.text.encode()


@given(st.text())
def test_text_that_can_be_encoded_is_left_alone(text: str) -> None:
    assert sendable(text) == text
