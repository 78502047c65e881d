"""Where a command runs: in the sandbox, outside with consent, or not at all. Purely decided."""

from collections.abc import Sequence
from enum import Enum

from handrail.processes.sandbox.settings import SandboxSettings


class Where(Enum):
    """The answer. Outside, the usual consent is needed; inside, `auto_allow` of the settings may spare it."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    REFUSED = "refused"


def where(settings: SandboxSettings, commands: Sequence[Sequence[str]] | None, *, wants_out: bool = False) -> Where:
    """
    Where a command line runs.

    `commands` are the words of each program that the line would start, None when it was not fully understood; then no
    exclusion counts. `wants_out` is the model's wish to run outside.
    """
    if not settings.enabled:
        return Where.OUTSIDE
    if commands and all(excluded(words, settings.excluded_commands) for words in commands):
        return Where.OUTSIDE
    if wants_out:
        return Where.OUTSIDE if settings.allow_unsandboxed else Where.REFUSED
    return Where.INSIDE


def excluded(words: Sequence[str], patterns: Sequence[str]) -> bool:
    """
    Whether one of the patterns means this program.

    `docker` and `docker *` and `docker:*` mean docker with any arguments, `npm run e2e *` those that begin so. The
    program is compared as it was written, so `./docker` is another one.
    """
    for pattern in patterns:
        start = pattern.removesuffix(":*").removesuffix(" *").split()
        if start and list(words[: len(start)]) == start:
            return True
    return False
