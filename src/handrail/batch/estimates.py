"""Solve rates with their uncertainty, and comparisons: pure functions over counts."""

from collections.abc import Sequence
from math import comb, sqrt

from handrail.records import record

Z = 1.959963984540054
"""The normal quantile of a two-sided interval of 95 %."""


@record
class TaskCount:
    """How many of the trials of a task were solved."""

    solved: int
    trials: int


def wilson(rate: float, count: float) -> tuple[float, float]:
    """The Wilson 95 % interval of a rate that was observed `count` times; a count need not be whole."""
    if count <= 0:
        return 0.0, 1.0
    share = Z * Z / count
    middle = (rate + share / 2) / (1 + share)
    half = Z / (1 + share) * sqrt(rate * (1 - rate) / count + share / (4 * count))
    low = 0.0 if rate <= 0 else max(0.0, middle - half)  # rounding must not leave the rate itself outside
    return low, 1.0 if rate >= 1 else min(1.0, middle + half)


def effective_count(tasks: Sequence[TaskCount]) -> float:
    """
    How many independent trials these are worth.

    Trials of one task resemble each other, so the variance between tasks decides. It is at least the number of tasks
    and at most the number of trials, which it is for one trial per task. A single task stands for itself.
    """
    trials = sum(task.trials for task in tasks)
    if len(tasks) < 2:
        return trials
    rate = sum(task.solved for task in tasks) / trials
    between = sum((task.solved - rate * task.trials) ** 2 for task in tasks)
    if rate in (0.0, 1.0):
        return len(tasks)
    variance = between / trials**2 * len(tasks) / (len(tasks) - 1)
    worth = rate * (1 - rate) / variance if variance else trials
    return min(max(worth, len(tasks)), trials)


def solve_interval(tasks: Sequence[TaskCount]) -> tuple[float, float]:
    """The 95 % interval of the share of trials that are solved."""
    trials = sum(task.trials for task in tasks)
    if not trials:
        return 0.0, 1.0
    return wilson(sum(task.solved for task in tasks) / trials, effective_count([t for t in tasks if t.trials]))


def pass_at(task: TaskCount, k: int) -> float:
    """The unbiased estimate that at least one of `k` trials solves the task; it needs `k` trials."""
    return 1 - comb(task.trials - task.solved, k) / comb(task.trials, k)


def pass_all(task: TaskCount, k: int) -> float:
    """The unbiased estimate that all of `k` trials solve the task; it needs `k` trials."""
    return comb(task.solved, k) / comb(task.trials, k)


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p-value that of pairs with different outcomes, either side is the solved one by chance."""
    pairs = only_first + only_second
    tail = sum(comb(pairs, number) for number in range(min(only_first, only_second) + 1))
    return min(1.0, float(2 * tail / (1 << pairs)))
