"""Solve rates: known figures, and what holds for all counts."""

from itertools import combinations
from math import comb, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.batch.estimates import (
    TaskCount,
    effective_count,
    mcnemar,
    pass_all,
    pass_at,
    solve_interval,
    wilson,
)


@pytest.mark.parametrize(
    ("solved", "count", "low", "high"),
    [
        pytest.param(0, 10, 0.0, 0.2775, id="none solved"),
        pytest.param(10, 10, 0.7225, 1.0, id="all solved"),
        pytest.param(5, 10, 0.2366, 0.7634, id="half of ten"),
        pytest.param(81, 263, 0.2553, 0.3662, id="the example of Newcombe's paper"),
        pytest.param(1, 1, 0.2065, 1.0, id="a single one"),
    ],
)
def test_the_wilson_interval_is_that_of_the_tables(solved: int, count: int, low: float, high: float) -> None:
    assert wilson(solved / count, count) == pytest.approx((low, high), abs=0.0001)


def test_without_a_count_nothing_is_known() -> None:
    assert wilson(0.0, 0) == solve_interval([]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("tasks", "worth"),
    [
        pytest.param([(1, 1), (0, 1), (1, 1)], 3, id="one trial each: every trial counts"),
        pytest.param([(2, 5)], 5, id="one task stands for itself"),
        pytest.param([(5, 5), (0, 5)], 2, id="trials that never differ count once per task"),
        pytest.param([(5, 5), (5, 5)], 2, id="all solved: nothing says that trials differ"),
        pytest.param([(2, 4), (2, 4)], 8, id="tasks that are alike: every trial counts"),
    ],
)
def test_trials_that_resemble_each_other_are_worth_less(tasks: list[tuple[int, int]], worth: float) -> None:
    assert effective_count([TaskCount(*each) for each in tasks]) == worth


counts = st.integers(1, 8).flatmap(lambda n: st.builds(TaskCount, st.integers(0, n), st.just(n)))


@given(st.lists(counts, min_size=1, max_size=12))
def test_an_interval_holds_the_rate_and_is_never_narrower_than_that_of_independent_trials(
    tasks: list[TaskCount],
) -> None:
    trials = sum(task.trials for task in tasks)
    rate = sum(task.solved for task in tasks) / trials
    low, high = solve_interval(tasks)
    plain_low, plain_high = wilson(rate, trials)

    assert 0 <= low <= rate <= high <= 1
    assert low <= plain_low + 1e-9
    assert plain_high - 1e-9 <= high


@given(counts, st.data())
def test_pass_at_k_is_the_share_of_all_choices_of_k_trials(task: TaskCount, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, task.trials))
    outcomes = [True] * task.solved + [False] * (task.trials - task.solved)
    choices = [*combinations(outcomes, k)]

    assert isclose(pass_at(task, k), sum(map(any, choices)) / len(choices), abs_tol=1e-12)
    assert isclose(pass_all(task, k), sum(map(all, choices)) / len(choices), abs_tol=1e-12)


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (10, 2, 0.03857421875), (7, 7, 1.0)],
)
def test_mcnemar_is_exact(only_first: int, only_second: int, p: float) -> None:
    assert mcnemar(only_first, only_second) == p


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_knows_no_order_and_is_a_probability(first: int, second: int) -> None:
    assert mcnemar(first, second) == mcnemar(second, first)
    assert 0 < mcnemar(first, second) <= 1


def test_mcnemar_takes_any_number_of_pairs() -> None:
    assert mcnemar(2000, 2000) == 1.0
    assert 0 <= mcnemar(0, 4000) <= comb(4000, 0)
