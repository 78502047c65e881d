"""What a run may use."""

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
