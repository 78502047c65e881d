"""What answers used and cost, per model."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from handrail.conversation.stream import Usage
from handrail.records import record

Cost: TypeAlias = Callable[[str, Usage], float | None]
"""Dollars for one answer of a model; None = no known price."""


def no_price(_model: str, _usage: Usage) -> float | None:
    """For models that nobody has a price for."""
    return None


@record
class Spent:
    """What one model has used so far. `dollars` is None when any of it has no known price."""

    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    dollars: float | None = 0.0

    def plus(self, usage: Usage, dollars: float | None) -> "Spent":
        """With one more answer."""
        return Spent(
            self.answers + 1,
            self.input_tokens + usage.fresh_input,
            self.output_tokens + usage.whole_output,
            self.cache_read_tokens + (usage.cache_read_tokens or 0),
            self.cache_write_tokens + (usage.cache_write_tokens or 0),
            None if dollars is None or self.dollars is None else self.dollars + dollars,
        )

    def with_all(self, other: "Spent") -> "Spent":
        """Both together."""
        return Spent(
            self.answers + other.answers,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            dollars((self, other)),
        )

    @property
    def tokens(self) -> int:
        """All tokens that went in and came out."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


def dollars(spent: Iterable[Spent]) -> float | None:
    """The sum; None if any part of it is unknown."""
    total = 0.0
    for each in spent:
        if each.dollars is None:
            return None
        total += each.dollars
    return total
