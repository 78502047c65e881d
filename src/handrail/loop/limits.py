"""The limits of a run, and the clock that measures its time."""

import asyncio

from handrail.records import record


@record
class Limits:
    """
    Each limit ends the run with its own reason and a history that can be continued. None = no limit.

    Turns are answers of the model. Dollars and tokens are counted when an answer is complete, so the last answer may
    exceed the limit. Dollars cannot be counted without a known price; the run says so. Seconds stop running work.
    """

    turns: int | None = None
    dollars: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("turns", "dollars", "tokens", "seconds"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise ValueError(f"the limit of {name} is {value!r}. Give a number above 0, or None for no limit.")


NO_LIMITS = Limits()


class RunClock:
    """Measures the time of a run from now on. `deadline` is when it is over, on the clock of the event loop."""

    def __init__(self, limits: Limits) -> None:
        self._time = asyncio.get_running_loop().time
        self._start = self._time()
        self.deadline = None if limits.seconds is None else self._start + limits.seconds

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return self._time() - self._start

    @property
    def seconds_left(self) -> float | None:
        """How long it may still take; None = no limit."""
        return None if self.deadline is None else self.deadline - self._time()
