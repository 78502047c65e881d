"""An object that is still arriving is read as far as it has come, and never wrongly."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.partial_json import arrived_fields

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param("", {}, id="nothing yet"),
        pytest.param('{"file_pa', {}, id="half a key"),
        pytest.param('{"file_path": ', {}, id="a key without a value"),
        pytest.param('{"file_path": "src/ap', {"file_path": "src/ap"}, id="half a string"),
        pytest.param('{"a": "b\\', {"a": "b"}, id="half an escape"),
        pytest.param('{"a": "b\\u00e', {"a": "b"}, id="half a code"),
        pytest.param('{"a": "b\\ud83d', {"a": "b"}, id="half a character"),
        pytest.param('{"a": "b\\ud83d\\ude00', {"a": "b\U0001f600"}, id="a whole one"),
        pytest.param('{"n": 12', {}, id="a number that may go on"),
        pytest.param('{"n": 12,', {"n": 12}, id="a number that is over"),
        pytest.param('{"a": [1, 2', {}, id="half a list"),
        pytest.param('{"a": 1, "b": "x', {"a": 1, "b": "x"}, id="a whole and a half"),
        pytest.param('["a"]', {}, id="no object"),
        pytest.param('{"a": nonsense, "b": 1}', {}, id="nonsense"),
        pytest.param('{"a": ' + "[" * 100_000, {}, id="endless nesting"),
    ],
)
def test_what_has_arrived_is_read(text: str, fields: dict[str, object]) -> None:
    assert arrived_fields(text) == fields


@given(OBJECTS, st.booleans(), st.data())
def test_every_beginning_of_an_object_holds_a_part_of_it(
    whole: dict[str, object], ascii_only: bool, data: st.DataObject
) -> None:
    text = json.dumps(whole, ensure_ascii=ascii_only)
    cut = data.draw(st.integers(0, len(text)))
    fields = arrived_fields(text[:cut])

    assert list(fields) == list(whole)[: len(fields)]
    for number, (name, value) in enumerate(fields.items()):
        is_last = number == len(fields) - 1
        original = whole[name]
        assert value == original or (is_last and isinstance(original, str) and original.startswith(str(value)))
    assert arrived_fields(text) == whole
