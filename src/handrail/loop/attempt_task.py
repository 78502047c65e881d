"""
Waiting for the task of an attempt.

Two waits would never end, and are refused: a call, hook or question of the attempt that waits for it is itself waited
for, and a task of another event loop wakes no task of this one.
"""

import asyncio
from contextvars import ContextVar, Token
from typing import TypeAlias

from handrail.errors import HandrailError

Attempts: TypeAlias = tuple["asyncio.Task[None]", ...]

_around: ContextVar[Attempts] = ContextVar("handrail_attempts", default=())
"""The attempts that wait for the code that runs here, the outermost first."""


def enter_attempt() -> Token[Attempts]:
    """The current task is an attempt: it waits for whatever is started from here on, until `leave_attempt`."""
    task = asyncio.current_task()
    assert task is not None
    return _around.set((*_around.get(), task))


def leave_attempt(token: Token[Attempts]) -> None:
    """The attempt ends. Its context must not hold it any more, or only the garbage collector would free both."""
    _around.reset(token)


def check_wait(task: "asyncio.Task[None] | None") -> bool:
    """
    Whether the attempt has to be waited for; with its loop closed, nothing of it can run any more.

    Raises:
        HandrailError: the wait would never end.
    """
    if task is None or task.done() or task.get_loop().is_closed():
        return False
    if task in _around.get():
        raise HandrailError(
            "A tool, hook or permission callback cannot close the run that waits for it. "
            "Call interrupt() there, and close the run or agent where the run is read."
        )
    check_loop(task.get_loop())
    return True


def check_loop(loop: asyncio.AbstractEventLoop) -> None:
    """HandrailError if a run of this loop, which is not closed, cannot be waited for here."""
    if loop is not asyncio.get_running_loop():
        raise HandrailError(
            "A prompt is still being worked on in another event loop, which cannot be waited for in this one. "
            "Call interrupt(), which works from everywhere, and close the run in its own loop."
        )
