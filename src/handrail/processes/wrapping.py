"""What starts programs needs to know of a sandbox."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Wrapped(Protocol):
    """A program as it is started in a sandbox."""

    @property
    def argv(self) -> Sequence[str]: ...

    @property
    def env(self) -> Mapping[str, str | None]:
        """What changes in its environment: a text sets a variable, None removes it."""
        ...

    @property
    def pass_fds(self) -> Sequence[int]:
        """Descriptors that it needs under the same numbers."""
        ...

    def close(self) -> None:
        """It has ended: let go of what was held for it."""
        ...


class Sandbox(Protocol):
    """Keeps programs from what is not theirs."""

    def wrap(self, argv: list[str], cwd: str) -> Wrapped: ...

    def explain(self, output: str, code: int) -> str:
        """What it kept from a program that ended so, in words for the model. Empty = nothing that it knows of."""
        ...
