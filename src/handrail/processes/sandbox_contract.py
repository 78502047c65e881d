"""The interface of a sandbox, for the code that starts programs."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
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


@record
class WrappedCommand:
    """A program as it is started in a sandbox."""

    argv: Sequence[str]
    env: Mapping[str, str | None]
    """What changes in its environment: a text sets a variable, None removes it."""
    pass_fds: Sequence[int]
    """Descriptors that it needs under the same numbers."""
    restrictions: Restrictions
    """What the reaper does to it before it starts; None = the program is confined by its arguments."""
    resources: ExitStack
    """What is held for it while it runs."""

    def close(self) -> None:
        """Let go of its resources, when it and everything it started has ended. Does nothing the second time."""
        self.resources.close()


class Sandbox(Protocol):
    """Keeps programs from what is not theirs."""

    async def standing(self, commands: Sequence[Sequence[str]] | None, *, wants_out: bool = False) -> Standing:
        """
        Where a command line runs.

        `commands` are the words of each program that it would start, None when it was not fully understood;
        `wants_out` is the model's wish to run it outside.
        """
        ...

    def wrap(self, argv: list[str], cwd: str) -> WrappedCommand:
        """The program, confined. Raises SandboxError if it cannot be confined, and must not be run."""
        ...

    def explain(self, output: str, code: int) -> str:
        """What it kept from a program that ended so, in words for the model. Empty = nothing that it knows of."""
        ...

    def close(self) -> None:
        """The session is over: end and remove what was made for its commands."""
        ...
