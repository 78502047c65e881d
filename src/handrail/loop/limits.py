"""What a run may use, and the clock that its time is measured by."""

import asyncio

from handrail.records import record


@record
class Limits:
    """
    Each limit ends the run with its own reason and a history that can be continued. None = no limit.

    Turns are answers of the model. Dollars and tokens are counted when an answer is whole, so that the last answer may
    pass the limit; dollars cannot be counted where no price is known, and the run says so. Seconds stop what runs.
    """

    turns: int | None = None
    dollars: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("turns", self.turns),
            ("dollars", self.dollars),
            ("tokens", self.tokens),
            ("seconds", self.seconds),
        ):
            if value is not None and not value > 0:
                raise ValueError(f"the limit of {name} is {value!r}. It must be above 0, or None for no limit.")


NO_LIMITS = Limits()


class RunClock:
    """The time that a run has taken, and has left."""

    def __init__(self, limits: Limits) -> None:
        self._limit = limits.seconds
        self._started_at: float | None = None

    def start(self) -> None:
        """Begin to count."""
        self._started_at = asyncio.get_running_loop().time()

    @property
    def is_running(self) -> bool:
        """Whether the run has begun."""
        return self._started_at is not None

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return 0.0 if self._started_at is None else asyncio.get_running_loop().time() - self._started_at

    @property
    def deadline(self) -> float | None:
        """When its time is over, on the clock of the event loop."""
        return None if self._limit is None or self._started_at is None else self._started_at + self._limit

    @property
    def seconds_left(self) -> float | None:
        """How long it may still take; None = no limit."""
        return None if self.deadline is None else self.deadline - asyncio.get_running_loop().time()

    @property
    def is_over(self) -> bool:
        """Whether its time is used up."""
        return self.deadline is not None and asyncio.get_running_loop().time() >= self.deadline
