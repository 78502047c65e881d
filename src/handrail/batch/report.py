"""Adds up the results of a batch: pure functions from results to the figures of a report."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from handrail.batch.estimates import TaskCount, mcnemar, pass_all, pass_at, solve_interval
from handrail.batch.outcome import CellStatus
from handrail.batch.results import CellResult
from handrail.errors import HandrailError
from handrail.records import record
from handrail.tools.wording import did_you_mean

NO_TAG = "(no tag)"
Places = Mapping[tuple[str, str, str, int], str]


@record
class BatchReport:
    """
    What there is to report of.

    `missing` cells have no result yet, `replaced` are results of cells that have changed since, `damaged` lines none.
    """

    results: tuple[CellResult, ...]
    missing: int
    replaced: int
    damaged: int


def current_results(results: Mapping[str, CellResult], plan: Places, damaged: int) -> BatchReport:
    """The results of the cells that are planned, each by its newest key."""
    current = tuple(results[key] for place, key in plan.items() if key in results and results[key].place == place)
    return BatchReport(current, len(plan) - len(current), len(results) - len(current), damaged)


def columns_of(results: Iterable[CellResult]) -> Callable[[CellResult], str]:
    """How a result's model and settings are named together, with as few words as tell them apart."""
    kept = list(results)
    several_models = len({each.model for each in kept}) > 1
    several_settings = len({each.settings for each in kept}) > 1
    if several_models and several_settings:
        return lambda each: f"{each.model}+{each.settings}"
    return (lambda each: each.settings) if several_settings else (lambda each: each.model)


def groups(results: Sequence[CellResult], by: str) -> dict[str, list[CellResult]]:
    """The results by their column, model, settings, task or tag; one with several tags is in several groups."""
    column = columns_of(results)
    names: dict[str, Callable[[CellResult], Sequence[str]]] = {
        "column": lambda each: (column(each),),
        "model": lambda each: (each.model,),
        "settings": lambda each: (each.settings,),
        "task": lambda each: (each.task,),
        "tag": lambda each: each.tags or (NO_TAG,),
    }
    found: dict[str, list[CellResult]] = {}
    for each in results:
        for name in names[by](each):
            found.setdefault(name, []).append(each)
    return found


def summary(results: Sequence[CellResult]) -> dict[str, Any]:
    """The figures of a group. Errors of the infrastructure and cells without a check are outside the solve rate."""
    solved = [each for each in results if each.status == CellStatus.SOLVED.value]
    failed = [each for each in results if each.status == CellStatus.FAILED.value]
    ran = [each for each in results if each.is_final]
    counted = [*solved, *failed]
    tasks = task_counts(counted, lambda each: each.task)
    task_cells = task_counts(counted, lambda each: (each.task, each.model, each.settings))
    priced = [each.dollars for each in ran if each.dollars is not None]
    lost = [each.lost_dollars + (0.0 if each.is_final else each.dollars or 0.0) for each in results]
    unpriced = [each for each in results if each.dollars is None or each.unpriced_attempts]
    whys = [each.why for each in failed]
    return {
        "cells": len(results),
        "counted": len(counted),
        "solved": len(solved),
        "rate": len(solved) / len(counted) if counted else None,
        "interval": list(solve_interval(tasks)) if counted else None,
        "unchecked": len(ran) - len(counted),
        "infrastructure": len(results) - len(ran),
        "failures": {why: whys.count(why) for why in sorted(set(whys))},
        "pass": pass_rates(task_cells),
        "cost_usd": sum(priced) + sum(lost),
        "lost_usd": sum(lost),
        "unpriced": len(unpriced),
        "cost_per_solve_usd": cost_per_solve(counted),
        "median_seconds": median([each.seconds for each in ran]) if ran else None,
        "median_turns": median([each.turns for each in ran]) if ran else None,
        "denials": sum(each.denials for each in ran),
        "unasked": sum(each.unasked for each in ran),
    }


def task_counts(counted: Iterable[CellResult], name_of: Callable[[CellResult], Hashable]) -> list[TaskCount]:
    """How often each task was solved; `name_of` says what one task is."""
    trials: dict[Hashable, list[bool]] = {}
    for each in counted:
        trials.setdefault(name_of(each), []).append(each.status == CellStatus.SOLVED.value)
    return [TaskCount(sum(outcomes), len(outcomes)) for outcomes in trials.values()]


def pass_rates(tasks: Sequence[TaskCount]) -> list[dict[str, Any]]:
    """pass@k and pass^k for k = 1, 2, 4 and so on and the most trials, each over the tasks with so many trials."""
    most = max((task.trials for task in tasks), default=0)
    sizes = [k for k in (2**power for power in range(most.bit_length())) if k < most] + [most]
    return [_pass_rate([task for task in tasks if task.trials >= k], k) for k in sizes] if most > 1 else []


def _pass_rate(tasks: Sequence[TaskCount], k: int) -> dict[str, Any]:
    any_of, all_of = (sum(rate(task, k) for task in tasks) / len(tasks) for rate in (pass_at, pass_all))
    return {"k": k, "tasks": len(tasks), "pass_at_k": any_of, "pass_all_k": all_of}


def cost_per_solve(counted: Sequence[CellResult]) -> float | None:
    """Dollars for all that counted, failures too, by solved cells; None if a price is not known or none is solved."""
    prices = [each.dollars for each in counted]
    solved = sum(each.status == CellStatus.SOLVED.value for each in counted)
    known = [price for price in prices if price is not None]
    return sum(known) / solved if solved and len(known) == len(prices) else None


def comparison(results: Sequence[CellResult], first: str, second: str) -> dict[str, Any]:
    """Two models, settings or columns, paired by task and trial; pairs that do not both count are left out."""
    column = columns_of(results)
    kinds: tuple[tuple[Callable[[CellResult], str], Callable[[CellResult], str]], ...] = (
        (column, lambda _: ""),
        (lambda each: each.model, lambda each: each.settings),
        (lambda each: each.settings, lambda each: each.model),
    )
    known: set[str] = set()
    for name_of, rest_of in kinds:
        names = {name_of(each) for each in results}
        if {first, second} <= names:
            sides = [
                {(each.task, each.trial, rest_of(each)): each for each in results if name_of(each) == name}
                for name in (first, second)
            ]
            return {"first": first, "second": second, **_pairs(*sides)}
        known |= names
    wrong = next((name for name in (first, second) if name not in known), "")
    if not wrong:
        raise HandrailError(f"{first!r} and {second!r} are not of one kind. Compare two models, settings or columns.")
    hint = did_you_mean(wrong, sorted(known)) or f" There are: {', '.join(sorted(known))}."
    raise HandrailError(f"there are no results of {wrong!r}.{hint}")


def _pairs(first: Mapping[Any, CellResult], second: Mapping[Any, CellResult]) -> dict[str, Any]:
    counts = (CellStatus.SOLVED.value, CellStatus.FAILED.value)
    both = [(first[place], second[place]) for place in first if place in second]
    pairs = [(a.status == counts[0], b.status == counts[0]) for a, b in both if {a.status, b.status} <= {*counts}]
    only_first, only_second = pairs.count((True, False)), pairs.count((False, True))
    return {
        "pairs": len(pairs),
        "left_out": len({*first, *second}) - len(pairs),
        "both": pairs.count((True, True)),
        "only_first": only_first,
        "only_second": only_second,
        "neither": pairs.count((False, False)),
        "p": mcnemar(only_first, only_second),
    }
