"""What the code that starts programs needs to know of a sandbox."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias

from handrail.records import record


class Where(Enum):
    """Where a command line runs."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    REFUSED = "refused"


@record
class Standing:
    """Where a command line would run, and what that means for consent."""

    where: Where
    spares: bool = False
    """It needs no consent, because the sandbox holds it."""
    reason: str = ""
    """Why running it outside needs consent, or why it is refused."""


UNCONFINED = Standing(Where.OUTSIDE)
"""There is no sandbox: the usual consent is all there is."""


Restrictions: TypeAlias = Mapping[str, Any] | None
"""Plain data for `processes.restrict`."""


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

    @property
    def restrictions(self) -> Restrictions:
        """What the reaper does to it before it starts; None = the program is confined by its arguments."""
        ...

    def close(self) -> None:
        """It has ended: let go of what was held for it."""
        ...


class Sandbox(Protocol):
    """Keeps programs from what is not theirs."""

    async def standing(self, commands: Sequence[Sequence[str]] | None, *, wants_out: bool = False) -> Standing:
        """
        Where a command line runs.

        `commands` are the words of each program that it would start, None when it was not fully understood;
        `wants_out` is the model's wish to run it outside.
        """
        ...

    def wrap(self, argv: list[str], cwd: str) -> Wrapped:
        """
        The program, confined.

        Raises:
            SandboxError: it cannot be confined, and must not be run.
        """
        ...

    def explain(self, output: str, code: int) -> str:
        """What it kept from a program that ended so, in words for the model. Empty = nothing that it knows of."""
        ...

    def close(self) -> None:
        """The session is over: end and remove what was made for its commands."""
        ...
