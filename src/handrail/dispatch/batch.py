"""The batch path: calls in runs, decided when the whole answer is there."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeVar

Item = TypeVar("Item")


def partition(calls: Sequence[Item], safe: Callable[[Item], bool]) -> list[list[Item]]:
    """Neighbours that are safe together make one run; every other call is a run of its own."""
    runs: list[list[Item]] = []
    for together, group in groupby(calls, key=safe):
        run = list(group)
        runs += [run] if together else [[call] for call in run]
    return runs
