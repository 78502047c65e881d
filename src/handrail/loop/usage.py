"""Tokens and costs of answers per model, checked against the limits of a run."""

from collections.abc import Callable, Collection
from typing import TypeAlias

from handrail.conversation.stream import Usage
from handrail.loop.limits import NO_LIMITS, Limits
from handrail.loop.state import Why
from handrail.records import record
from handrail.tools.context import NO_BUDGET, Budget

Cost: TypeAlias = Callable[[str, Usage], float | None]
"""Dollars for one answer of a model; None = no known price."""


def no_price(_model: str, _usage: Usage) -> float | None:
    """The cost of models without a known price."""
    return None


@record
class ModelUsage:
    """What one model has used so far. `dollars` is None when any of it has no known price."""

    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    dollars: float | None = 0.0
    web_searches: int = 0

    @classmethod
    def of_answer(cls, usage: Usage, dollars: float | None) -> "ModelUsage":
        """The usage of one answer."""
        cached, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        searches = usage.web_searches or 0
        return cls(1, usage.fresh_input, usage.whole_output, cached, written, dollars, searches)

    def with_all(self, other: "ModelUsage") -> "ModelUsage":
        """The sum of both."""
        return ModelUsage(
            self.answers + other.answers,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            None if self.dollars is None or other.dollars is None else self.dollars + other.dollars,
            self.web_searches + other.web_searches,
        )

    @property
    def tokens(self) -> int:
        """All tokens that went in and came out."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


def total_dollars(usages: Collection[ModelUsage]) -> float | None:
    """The sum; None if any part of it is unknown."""
    known = [usage.dollars for usage in usages if usage.dollars is not None]
    return sum(known, 0.0) if len(known) == len(usages) else None


class UsageMeter:
    """The usage of one run. Answers are counted when they are complete."""

    def __init__(self, limits: Limits, cost: Cost) -> None:
        self._limits = limits
        self._cost = cost
        self._has_warned = False
        self.by_model: dict[str, ModelUsage] = {}
        self.own = ModelUsage()
        """What is left of it without sub-agents."""
        self.model_seconds = 0.0

    @property
    def dollars(self) -> float | None:
        """The cost so far; None if a part of it has no known price."""
        return total_dollars(self.by_model.values())

    def add(self, model: str, usage: Usage, *, is_own: bool = True) -> None:
        """Count one more answer, of the run itself or of a sub-agent."""
        answer = ModelUsage.of_answer(usage, self._cost(model, usage))
        if is_own:
            self.own = self.own.with_all(answer)
        before = self.by_model.get(model)
        self.by_model[model] = answer if before is None else before.with_all(answer)

    def price_warning(self) -> str:
        """Says once that the limit of dollars cannot be kept."""
        if self._has_warned or self._limits.dollars is None or self.dollars is not None:
            return ""
        self._has_warned = True
        unknown = ", ".join(repr(model) for model, usage in self.by_model.items() if usage.dollars is None)
        return (
            f"The limit of {self._limits.dollars:g} dollars cannot be kept: the price of {unknown} is not known. "
            "Limit turns, tokens or seconds instead."
        )

    def budget_left(self, turns: int, seconds: float | None) -> Budget:
        """The budget left after this many turns, with these seconds left."""
        limits, usages = self._limits, self.by_model.values()
        if limits is NO_LIMITS:
            return NO_BUDGET
        dollars, tokens = sum(usage.dollars or 0.0 for usage in usages), sum(usage.tokens for usage in usages)
        return Budget(
            None if limits.turns is None else max(0, limits.turns - turns),
            None if limits.dollars is None else max(0.0, limits.dollars - dollars),
            None if limits.tokens is None else max(0, limits.tokens - tokens),
            None if seconds is None else max(0.0, seconds),
        )

    def limit_reached(self, turns: int) -> Why | None:
        """The limit that is reached after this many turns; None = none is."""
        limits, usages = self._limits, self.by_model.values()
        if limits.turns is not None and turns >= limits.turns:
            return Why.MAX_TURNS
        if limits.dollars is not None and sum(usage.dollars or 0.0 for usage in usages) >= limits.dollars:
            return Why.MAX_DOLLARS
        if limits.tokens is not None and sum(usage.tokens for usage in usages) >= limits.tokens:
            return Why.MAX_TOKENS
        return None
