"""What a run may use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
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


NO_LIMITS = Limits()
