"""Decides where a command runs: in the sandbox, outside with consent, or not at all."""

from collections.abc import Sequence

from handrail.processes.sandbox.settings import SandboxSettings
from handrail.processes.sandbox_contract import UNCONFINED, Standing, Where

LEAVES = "it asks to run outside the sandbox"
KEPT_IN = "It may not leave the sandbox: sandbox.allowUnsandboxedCommands is false"


def standing(
    settings: SandboxSettings, commands: Sequence[Sequence[str]] | None, *, wants_out: bool, obstacle: str
) -> Standing:
    """Where a command line runs, and whether consent is needed for that. `obstacle`: why no sandbox works here."""
    if not settings.enabled:
        return UNCONFINED
    if settings.broken:
        return Standing(Where.REFUSED, reason=f"the sandbox settings are not understood: {' '.join(settings.problems)}")
    place = where(settings, commands, wants_out=wants_out)
    if place is Where.REFUSED:
        return Standing(place, reason=KEPT_IN)
    if place is Where.OUTSIDE:
        return Standing(place, reason=LEAVES if where(settings, commands) is Where.INSIDE else "")
    if not obstacle:
        return Standing(place, spares=settings.auto_allow)
    if settings.allow_unsandboxed:
        return Standing(Where.OUTSIDE, reason=f"{obstacle}, so this runs with all your rights")
    return Standing(Where.REFUSED, reason=f"{obstacle}, and sandbox.allowUnsandboxedCommands is false")


def where(settings: SandboxSettings, commands: Sequence[Sequence[str]] | None, *, wants_out: bool = False) -> Where:
    """
    Where a command line runs.

    `commands` are the words of each program that the line would start, None when it was not fully understood; then no
    exclusion counts. `wants_out` is the model's wish to run outside.
    """
    if not settings.enabled:
        return Where.OUTSIDE
    if commands and all(is_excluded(words, settings.excluded_commands) for words in commands):
        return Where.OUTSIDE
    if wants_out:
        return Where.OUTSIDE if settings.allow_unsandboxed else Where.REFUSED
    return Where.INSIDE


def is_excluded(words: Sequence[str], patterns: Sequence[str]) -> bool:
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
