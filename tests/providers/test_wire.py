"""JSON on the wire: nothing leaves that is no JSON, and no call starts with a number that is none."""

import json
import math
from typing import Any

import pytest

from handrail.conversation.blocks import BrokenToolUse
from handrail.conversation.stream import BlockEnd
from handrail.providers.wire import arguments, dump
from tests.providers.reading import READERS

ENDLESS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"]


def refused(literal: str) -> Any:
    raise AssertionError(f"{literal} is no JSON")


@pytest.mark.parametrize("literal", ENDLESS)
@pytest.mark.parametrize("text", ['{"x": %s}', '{"x": [{"y": %s}]}', '"{\\"x\\": %s}"'])
def test_arguments_with_a_number_that_is_none_are_a_problem(text: str, literal: str) -> None:
    problem = arguments(text % literal)

    assert isinstance(problem, str)
    assert f"{literal} is not a finite number" in problem


def test_finite_numbers_stay_what_they_are() -> None:
    assert arguments('{"a": 1.5, "b": -1e3, "c": 12345678901234567890}') == {
        "a": 1.5,
        "b": -1000.0,
        "c": 12345678901234567890,
    }


def test_what_is_written_is_always_json() -> None:
    written = dump({"a": [math.nan, math.inf, {"b": -math.inf}], "c": 1.5, "d": "NaN"})

    assert json.loads(written, parse_constant=refused) == {"a": [None, None, {"b": None}], "c": 1.5, "d": "NaN"}


WHOLE = {
    "anthropic": '{"type":"message","content":[{"type":"tool_use","id":"a","name":"T","input":{"x":%s}}],'
    '"stop_reason":"tool_use"}',
    "openai-chat": '{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"T","arguments":{"x":%s}}}]},'
    '"finish_reason":"tool_calls"}]}',
    "openai-responses": '{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"T",'
    '"arguments":{"x":%s}}]}',
}


@pytest.mark.parametrize("literal", ENDLESS)
@pytest.mark.parametrize("api", READERS)
def test_a_call_whose_input_is_an_object_with_such_a_number_is_broken(api: str, literal: str) -> None:
    reader = READERS[api]()
    events = reader.feed((WHOLE[api] % literal).encode()) + reader.end()

    blocks = [event.block for event in events if isinstance(event, BlockEnd)]

    assert [type(block) for block in blocks] == [BrokenToolUse]
