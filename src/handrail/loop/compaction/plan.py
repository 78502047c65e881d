"""The interface between the loop and its compaction callback, and the test for requests that are too long."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeAlias

from handrail.conversation.messages import Message
from handrail.conversation.request import History
from handrail.conversation.stream import StreamFailure
from handrail.records import record

LENGTH_HINTS = ("too long", "context length", "context window", "maximum context", "too large", "too many tokens")


@record
class CompactionRequest:
    """
    Asks for a shorter history. `forced`: the model refused the request as too long.

    `instructions`, which may be empty, come from a user who asked for a summary; a callback that cannot make one then
    raises HandrailError. None = the loop asks by itself, before each request.
    """

    history: History
    model: str
    context_tokens: int
    forced: bool = False
    instructions: str | None = None


@record
class Compaction:
    """The messages that take the history's place: `micro` has stubs for old results, `full` a summary."""

    messages: Sequence[Message]
    kind: Literal["micro", "full"]
    note: str = ""
    """For people."""


@record
class SummaryPlan:
    """A summary that has yet to be made: hooks are asked and the reader is told before `summarise` is called."""

    summarise: Callable[[], Coroutine[Any, Any, Compaction | None]]


Compact: TypeAlias = Callable[[CompactionRequest], Coroutine[Any, Any, Compaction | SummaryPlan | None] | None]
"""Called before each request; None, at once or in the end = leave the history as it is."""


def is_too_long(failure: StreamFailure) -> bool:
    """Whether the failure message says that the request was too long."""
    message = failure.message.lower()
    return failure.status in {400, 413} and any(hint in message for hint in LENGTH_HINTS)
