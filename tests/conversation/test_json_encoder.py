"""JSON of a prepared encoder is that of the library, byte for byte."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.json_encoder import json_encoder

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.booleans() | st.none(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_is_written_as_the_library_writes_it(value: Any) -> None:
    assert json_encoder()(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("value", [{"a": {1, 2}}, [object()], {(1,): 2}], ids=["a set", "an object", "a key"])
def test_what_json_cannot_express_is_refused_as_the_library_does(value: Any) -> None:
    with pytest.raises(TypeError) as ours:
        json_encoder()(value)
    with pytest.raises(TypeError) as theirs:
        json.dumps(value)

    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_refused_if_so_asked(number: float) -> None:
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        json_encoder(allow_nan=False)([number])


def test_one_encoder_writes_many_values_and_one_in_the_middle_that_fails() -> None:
    encode = json_encoder()
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(RecursionError):
        encode(circle)

    assert [encode({"a": at}) for at in range(3)] == ['{"a":0}', '{"a":1}', '{"a":2}']
