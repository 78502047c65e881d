"""Which calls a model repeats, over any answers."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.blocks import Json, Text, ToolResult, ToolUse
from handrail.loop.repeat_guard import STOP_AFTER, STOP_AFTER_SAME_RESULT, RepeatGuard
from handrail.loop.state import Why
from handrail.tools.outcome import Cause, Outcome, Status

values = st.sampled_from([1, True, 1.0, "1", None, ["1"], {"a": 1, "b": "x"}, {"b": "x", "a": 1}])
inputs = st.dictionaries(st.sampled_from("ab"), values, max_size=2)
ends = st.sampled_from([Status.OK, Status.ERROR, Status.DENIED, Status.CANCELLED])


def outcome(name: str, given_input: Json, text: str, status: Status) -> Outcome:
    return Outcome(ToolUse("id", name, given_input), status, Cause.DONE, ToolResult("id", (Text(text),)))


outcomes = st.builds(outcome, st.sampled_from(["Read", "Bash"]), inputs, st.sampled_from(["yes", "no"]), ends)
answers = st.lists(st.lists(outcomes, max_size=3), max_size=6)


@given(answers | answers.map(lambda some: [each for each in some for _ in range(3)]))
def test_the_calls_that_are_repeated_are_those_that_are_spelled_the_same(seen: Sequence[Sequence[Outcome]]) -> None:
    guard, rows = RepeatGuard(), dict[object, int]()

    for answer in seen:
        guard = guard.after(answer)
        spelled = {
            (each.use.name, json.dumps(each.use.input, sort_keys=True), each.result.text, each.status is Status.OK)
            for each in answer
            if each.status is not Status.CANCELLED
        }
        rows = {call: rows.get(call, 0) + 1 for call in spelled}

        assert sorted(guard.rows.values()) == sorted(times for times in rows.values() if times > 1)


@pytest.mark.parametrize(
    ("status", "times", "why"),
    [
        (Status.ERROR, STOP_AFTER, Why.REPEATED_FAILURE),
        (Status.DENIED, STOP_AFTER, Why.REPEATED_FAILURE),
        (Status.OK, STOP_AFTER_SAME_RESULT, Why.REPEATED_CALL),
    ],
)
def test_other_calls_beside_it_do_not_hide_a_repeated_one(status: Status, times: int, why: Why) -> None:
    guard = RepeatGuard()

    for number in range(times):
        assert guard.stuck is None
        other = outcome("Read", {"file_path": str(number)}, "same", Status.OK)
        guard = guard.after([other, outcome("Read", {"file_path": "a", "limit": 1}, "same", status)])

    assert guard.stuck is why
