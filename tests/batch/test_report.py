"""The figures of a report, from results."""

from typing import Any

import pytest

from handrail.batch.report import comparison, groups, summary
from handrail.batch.results import CellResult
from handrail.errors import HandrailError


def result(task: str, status: str, trial: int = 1, **fields: Any) -> CellResult:
    known = {"model": "m", "settings": "s", "why": "", **fields}
    return CellResult(key=f"{task}{trial}{known}", task=task, trial=trial, status=status, **known)


def test_errors_of_the_infrastructure_and_unchecked_cells_are_outside_the_rate() -> None:
    found = summary(
        [
            result("a", "solved", seconds=1.0, turns=2, dollars=0.25, denials=2, unasked=1, lost_dollars=0.125),
            result("b", "failed", seconds=3.0, turns=4, dollars=0.5, why="timeout"),
            result("c", "unchecked", seconds=9.0, turns=6, dollars=1.0),
            result("d", "infrastructure", seconds=99.0, turns=99, dollars=9.0, denials=9),
        ]
    )

    assert found["interval"] == pytest.approx([0.0945, 0.9055], abs=0.0001)
    del found["interval"]
    assert found == {
        "cells": 4,
        "counted": 2,
        "solved": 1,
        "rate": 0.5,
        "unchecked": 1,
        "infrastructure": 1,
        "failures": {"timeout": 1},
        "pass": [],
        "cost_usd": 10.875,
        "lost_usd": 9.125,
        "unpriced": 0,
        "cost_per_solve_usd": 0.75,
        "median_seconds": 3.0,
        "median_turns": 4,
        "denials": 2,
        "unasked": 1,
    }


def test_a_cell_with_an_attempt_of_unknown_cost_is_one_whose_price_is_not_known() -> None:
    cut_off = result("a", "solved", dollars=1.0, attempts=2, unpriced_attempts=1)

    found = summary([cut_off, result("b", "infrastructure")])

    assert (found["cost_usd"], found["unpriced"], found["cost_per_solve_usd"]) == (1.0, 2, 1.0)


def test_nothing_is_said_where_nothing_is_known() -> None:
    empty = summary([])
    unpriced = summary([result("a", "solved", dollars=1.0), result("b", "failed")])

    assert [empty[name] for name in ("rate", "interval", "median_seconds", "cost_per_solve_usd")] == [None] * 4
    assert (unpriced["cost_usd"], unpriced["unpriced"], unpriced["cost_per_solve_usd"]) == (1.0, 1, None)


def test_pass_at_k_is_the_mean_over_the_tasks_that_have_so_many_trials() -> None:
    trials = [("a", "solved", 1), ("a", "failed", 2), ("a", "solved", 3), ("b", "failed", 1), ("b", "failed", 2)]

    found = summary([result(*each) for each in [*trials, ("b", "infrastructure", 3)]])["pass"]

    assert found == [
        {"k": 1, "tasks": 2, "pass_at_k": pytest.approx(1 / 3), "pass_all_k": pytest.approx(1 / 3)},
        {"k": 2, "tasks": 2, "pass_at_k": 0.5, "pass_all_k": pytest.approx(1 / 6)},
        {"k": 3, "tasks": 1, "pass_at_k": 1.0, "pass_all_k": 0.0},
    ]


def test_results_are_grouped_and_one_with_two_tags_counts_for_both() -> None:
    results = [
        result("a", "solved", tags=("x", "y")),
        result("b", "solved", model="n"),
        result("b", "solved", settings="t"),
    ]

    def names(by: str) -> dict[str, int]:
        return {name: len(each) for name, each in groups(results, by).items()}

    assert names("tag") == {"x": 1, "y": 1, "(no tag)": 2}
    assert names("task") == {"a": 1, "b": 2}
    assert names("model") == {"m": 2, "n": 1}
    assert names("settings") == {"s": 2, "t": 1}
    assert names("column") == {"m+s": 1, "n+s": 1, "m+t": 1}
    assert {*groups(results[:2], "column")} == {"m", "n"}
    assert {*groups([results[0], results[2]], "column")} == {"s", "t"}


PAIRED = [
    ("a", "solved", "solved"),
    ("b", "solved", "failed"),
    ("c", "solved", "failed"),
    ("d", "failed", "failed"),
    ("e", "solved", "infrastructure"),
    ("f", "solved", "unchecked"),
]


def test_two_columns_are_compared_by_pairs_that_both_count() -> None:
    results = [result(task, first) for task, first, _ in PAIRED]
    results += [result(task, second, model="n") for task, _, second in PAIRED]
    results.append(result("g", "solved"))

    assert comparison(results, "m", "n") == {
        "first": "m",
        "second": "n",
        "pairs": 4,
        "left_out": 3,
        "both": 1,
        "only_first": 2,
        "only_second": 0,
        "neither": 1,
        "p": 0.5,
    }


def test_models_under_several_settings_are_paired_under_the_same() -> None:
    results = [
        result("a", "solved" if (model, settings) == ("m", "s") else "failed", model=model, settings=settings)
        for model in ("m", "n")
        for settings in ("s", "t")
    ]

    by_model, by_settings = comparison(results, "m", "n"), comparison(results, "s", "t")

    assert (by_model["pairs"], by_model["only_first"], by_model["neither"]) == (2, 1, 1)
    assert (by_settings["pairs"], by_settings["only_first"]) == (2, 1)
    assert comparison(results, "m+s", "n+t")["pairs"] == 1
    with pytest.raises(HandrailError, match=r"there are no results of 'zz'\. There are: m, m\+s, m\+t, n,"):
        comparison(results, "m", "zz")
    with pytest.raises(HandrailError, match="'m' and 's' are not of one kind"):
        comparison(results, "m", "s")
