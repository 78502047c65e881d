"""Abort signals: set once, downwards only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.tools.abort import AbortReason, AbortSignal

REASONS = st.sampled_from(AbortReason)


def test_a_child_aborts_with_its_parent_and_never_the_other_way() -> None:
    turn = AbortSignal()
    answer = turn.child()
    one, other = answer.child(), answer.child()

    one.abort(AbortReason.SIBLING)
    assert [signal.reason for signal in (turn, answer, one, other)] == [None, None, AbortReason.SIBLING, None]

    turn.abort(AbortReason.USER)
    assert [signal.reason for signal in (turn, answer, one, other)] == [
        AbortReason.USER,
        AbortReason.USER,
        AbortReason.SIBLING,
        AbortReason.USER,
    ]
    assert other.aborted


def test_a_child_of_an_aborted_signal_is_born_aborted() -> None:
    turn = AbortSignal()
    turn.abort(AbortReason.USER)

    assert turn.child().reason is AbortReason.USER


def test_listeners_are_told_once_in_order_and_late_ones_at_once() -> None:
    signal = AbortSignal()
    told: list[tuple[str, AbortReason]] = []
    signal.listen(lambda reason: told.append(("first", reason)))
    signal.listen(lambda reason: told.append(("second", reason)))

    signal.abort(AbortReason.SUBMIT)
    signal.abort(AbortReason.USER)
    signal.listen(lambda reason: told.append(("late", reason)))

    assert told == [
        ("first", AbortReason.SUBMIT),
        ("second", AbortReason.SUBMIT),
        ("late", AbortReason.SUBMIT),
    ]


def test_a_released_child_no_longer_hears_its_parent() -> None:
    turn = AbortSignal()
    child = turn.child()

    child.release()
    turn.abort(AbortReason.USER)
    turn.release()

    assert not child.aborted


@pytest.mark.proves("L3")
def test_discarded_outweighs_sibling_outweighs_user_outweighs_submit() -> None:
    order = [AbortReason.DISCARDED, AbortReason.SIBLING, AbortReason.USER, AbortReason.SUBMIT]
    assert [[a.outweighs(b) for b in order] for a in order] == [[i < j for j in range(4)] for i in range(4)]


@given(st.lists(st.tuples(st.integers(0, 5), REASONS), max_size=8), st.lists(st.integers(0, 4), max_size=5))
def test_in_any_tree_a_signal_has_the_first_reason_given_to_it_or_to_one_above(
    aborts: list[tuple[int, AbortReason]], shape: list[int]
) -> None:
    signals, above = [AbortSignal()], [-1]
    for number, parent in enumerate(shape):
        signals.append(signals[parent % (number + 1)].child())
        above.append(parent % (number + 1))
    expected: list[AbortReason | None] = [None] * len(signals)
    for chosen, reason in aborts:
        at = chosen % len(signals)
        signals[at].abort(reason)
        expected[at] = expected[at] or reason
        for number in range(1, len(signals)):
            expected[number] = expected[number] or expected[above[number]]

    assert [signal.reason for signal in signals] == expected
