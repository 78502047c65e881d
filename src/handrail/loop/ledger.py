"""What a run has used so far, held against its limits."""

from handrail.conversation.stream import Usage
from handrail.loop.limits import NO_LIMITS, Limits
from handrail.loop.spending import Cost, Spent, dollars
from handrail.loop.state import Why
from handrail.tools.context import NO_BUDGET, Budget


class Ledger:
    """Answers are entered when they are whole; prices may be unknown."""

    def __init__(self, limits: Limits, cost: Cost) -> None:
        self._limits = limits
        self._cost = cost
        self._warned = False
        self.spent: dict[str, Spent] = {}
        self.model_seconds = 0.0

    @property
    def dollars(self) -> float | None:
        """The bill so far; None if a part of it has no known price."""
        return dollars(self.spent.values())

    def enter(self, model: str, usage: Usage) -> None:
        """One more answer."""
        cost = self._cost(model, usage)
        self.spent[model] = self.spent.get(model, Spent()).plus(usage, cost)

    def warning(self) -> str:
        """Said once: the limit of dollars that cannot be kept."""
        if self._warned or self._limits.dollars is None or self.dollars is not None:
            return ""
        self._warned = True
        unknown = ", ".join(repr(model) for model, spent in self.spent.items() if spent.dollars is None)
        return (
            f"The limit of {self._limits.dollars:g} dollars cannot be kept: the price of {unknown} is not known. "
            "Limit turns, tokens or seconds instead."
        )

    def left(self, turns: int, seconds: float | None) -> Budget:
        """What is left after so many turns, with so many seconds left."""
        limits, spent = self._limits, self.spent.values()
        if limits is NO_LIMITS:
            return NO_BUDGET
        return Budget(
            None if limits.turns is None else max(0, limits.turns - turns),
            None if limits.dollars is None else max(0.0, limits.dollars - sum(each.dollars or 0.0 for each in spent)),
            None if limits.tokens is None else max(0, limits.tokens - sum(each.tokens for each in spent)),
            None if seconds is None else max(0.0, seconds),
        )

    def passed(self, turns: int) -> Why | None:
        """The limit that is used up after so many turns."""
        limits, spent = self._limits, self.spent.values()
        if limits.turns is not None and turns >= limits.turns:
            return Why.MAX_TURNS
        if limits.dollars is not None and sum(each.dollars or 0.0 for each in spent) >= limits.dollars:
            return Why.MAX_DOLLARS
        if limits.tokens is not None and sum(each.tokens for each in spent) >= limits.tokens:
            return Why.MAX_TOKENS
        return None
