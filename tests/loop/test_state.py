"""The policy of the loop, as a table."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.loop.state import ENDS, Move, RunState, TurnResult, Why, next_state

BEGUN = RunState(Move.NEXT_TURN, Why.TOOL_RESULTS, 3)


@pytest.mark.proves("K3", "K4", "K5", "K6", "E1", "E4")
@pytest.mark.parametrize(
    ("turn", "move", "why"),
    [
        pytest.param(TurnResult(has_calls=True), Move.NEXT_TURN, Why.TOOL_RESULTS, id="calls lead to the next turn"),
        pytest.param(TurnResult(), Move.STOPPED, Why.COMPLETED, id="no calls end it"),
        pytest.param(TurnResult(stop_reason="tool_use"), Move.STOPPED, Why.COMPLETED, id="a stop reason is no call"),
        pytest.param(
            TurnResult(has_calls=True, stop_reason="refusal"), Move.NEXT_TURN, Why.TOOL_RESULTS, id="calls outweigh it"
        ),
        pytest.param(
            TurnResult(has_queued_messages=True), Move.NEXT_TURN, Why.QUEUED_MESSAGE, id="somebody has said something"
        ),
        pytest.param(TurnResult(stop_reason="refusal"), Move.STOPPED, Why.REFUSED, id="a refusal"),
        pytest.param(TurnResult(stop_reason="pause_turn"), Move.NEXT_TURN, Why.PAUSED, id="a pause is continued"),
        pytest.param(TurnResult(stop_reason="length"), Move.NEXT_TURN, Why.CUT_ANSWER, id="a cut answer is continued"),
        pytest.param(
            TurnResult(is_empty=True), Move.NEXT_TURN, Why.EMPTY_ANSWER, id="an empty answer is asked for again"
        ),
        pytest.param(TurnResult(is_unfit=True), Move.NEXT_TURN, Why.UNFIT_ANSWER, id="an unfit one too"),
        pytest.param(
            TurnResult(has_calls=True, stuck=Why.REPEATED_FAILURE), Move.ERROR, Why.REPEATED_FAILURE, id="the guard"
        ),
        pytest.param(TurnResult(has_failed=True), Move.ERROR, Why.MODEL_FAILED, id="a failure"),
        pytest.param(
            TurnResult(has_calls=True, limit=Why.MAX_TURNS),
            Move.LIMIT,
            Why.MAX_TURNS,
            id="a limit keeps it from going on",
        ),
        pytest.param(
            TurnResult(limit=Why.MAX_TURNS), Move.STOPPED, Why.COMPLETED, id="an answer at the limit is an answer"
        ),
        pytest.param(
            TurnResult(has_calls=True, stopped_by=Why.ABORTED_TOOLS),
            Move.ABORTED,
            Why.ABORTED_TOOLS,
            id="an interrupt wins",
        ),
        pytest.param(
            TurnResult(has_failed=True, stopped_by=Why.MAX_SECONDS),
            Move.LIMIT,
            Why.MAX_SECONDS,
            id="time is over, whatever failed",
        ),
    ],
)
def test_what_a_turn_leads_to(turn: TurnResult, move: Move, why: Why) -> None:
    state = next_state(BEGUN, turn, structured_retries=3)

    assert (state.move, state.why, state.turn) == (move, why, 4)


def test_a_turn_without_an_answer_is_not_counted() -> None:
    assert next_state(BEGUN, TurnResult(has_answer=False, has_failed=True), 3).turn == 3


@pytest.mark.parametrize(
    ("turn", "times", "then"),
    [
        (TurnResult(is_empty=True), 1, Why.COMPLETED),
        (TurnResult(stop_reason="max_tokens"), 3, Why.CUT_ANSWERS),
        (TurnResult(stop_reason="pause_turn"), 20, Why.COMPLETED),
        (TurnResult(is_unfit=True), 2, Why.UNFIT_ANSWERS),
    ],
)
def test_asking_again_has_an_end(turn: TurnResult, times: int, then: Why) -> None:
    state = RunState()
    for _ in range(times):
        state = next_state(state, turn, structured_retries=2)
        assert not state.is_over

    assert next_state(state, turn, structured_retries=2).why is then


def test_unfit_answers_are_counted_over_the_whole_run() -> None:
    state = RunState()
    for turn in (TurnResult(is_unfit=True), TurnResult(has_calls=True), TurnResult(is_unfit=True)):
        state = next_state(state, turn, structured_retries=1)

    assert state.why is Why.UNFIT_ANSWERS


turns = st.builds(
    TurnResult,
    has_calls=st.booleans(),
    is_empty=st.booleans(),
    stop_reason=st.sampled_from(["", "end_turn", "refusal", "pause_turn", "max_tokens"]),
    stopped_by=st.none() | st.sampled_from([Why.ABORTED_STREAMING, Why.ABORTED_TOOLS, Why.MAX_SECONDS]),
    has_failed=st.booleans(),
    has_queued_messages=st.booleans(),
    stuck=st.sampled_from([None, Why.REPEATED_FAILURE, Why.REPEATED_CALL]),
    is_unfit=st.booleans(),
    limit=st.none() | st.sampled_from([Why.MAX_TURNS, Why.MAX_DOLLARS, Why.MAX_TOKENS]),
)


@pytest.mark.proves("K3")
@given(st.lists(turns, max_size=8))
def test_a_state_is_over_exactly_when_its_move_is_an_end(seen: Sequence[TurnResult]) -> None:
    state = RunState()
    for turn in seen:
        state = next_state(state, turn, structured_retries=3)
        assert state.is_over == (state.move not in {Move.START, Move.NEXT_TURN}) == (state.why in ENDS)
        assert not (state.move is Move.NEXT_TURN and (turn.stopped_by or turn.has_failed or turn.limit))
