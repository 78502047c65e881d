"""A call in the executor, and its states."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from enum import IntEnum
from operator import sub
from typing import Any, TypeAlias

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.footprint import WORLD, WRITES_WORLD, Footprint
from handrail.errors import HandrailError
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.access import EXCLUSIVE, Access
from handrail.tools.context import Progress, ProgressCallback
from handrail.tools.flags import short
from handrail.tools.outcome import Cause, Outcome, Timings
from handrail.tools.output import Output
from handrail.tools.pool import AnyTool

CallEnd: TypeAlias = tuple[Output | None, Cause, str, Sequence[str]]
"""How a tool ended: its output, the cause, the error message if there is one, and notices about its files."""


class CallState(IntEnum):
    """The state of a call."""

    QUEUED = 0
    EXECUTING = 1
    COMPLETED = 2
    YIELDED = 3


MOVES: tuple[tuple[CallState, ...], ...] = (
    (CallState.EXECUTING, CallState.COMPLETED),  # from QUEUED
    (CallState.COMPLETED,),  # from EXECUTING
    (CallState.YIELDED,),  # from COMPLETED
    (),
)


class Call:
    """One call. Only `move` changes its state, and only as `MOVES` permits."""

    __slots__ = (
        "abort",
        "access",
        "args",
        "before",
        "began",
        "blame",
        "context",
        "entered",
        "footprint",
        "in_answer",
        "is_repeat",
        "left",
        "marks",
        "number",
        "on_progress",
        "outcome",
        "problem",
        "progress",
        "read_only",
        "resume",
        "state",
        "stop_reason",
        "task",
        "tool",
        "use",
        "waiter",
        "was_deferred",
    )

    def __init__(self, number: int, use: ToolUse, now: float) -> None:
        self.number = number
        self.use = use
        self.marks = [now]
        """When it was queued, and when each of its stages ended."""
        self.abort = AbortSignal()
        self.state = CallState.QUEUED
        self.tool: AnyTool | None = None
        self.args: Any = None
        self.problem: HandrailError | None = None
        self.read_only = False
        self.in_answer = True
        """It is part of an answer, so its failure or an interrupt concerns the others; else it stands for itself."""
        self.was_deferred = False
        """A hook put it off in an earlier run, so hooks or the user have to decide about it now."""
        self.access: Access = EXCLUSIVE
        """What its tool declared for its input."""
        self.footprint: Footprint = WRITES_WORLD
        """The places that it holds in the schedule."""
        self.context: Context | None = None
        """What its task runs in; None = the context of the moment it starts."""
        self.task: asyncio.Task[None] | None = None
        self.entered = False
        """The task has started, so its code notices a cancellation."""
        self.began = False
        """The tool itself was called; from here on there may be effects."""
        self.is_repeat = False
        """It was begun for an answer that was given up, and is not run again; `before` is how it ended then."""
        self.before: Outcome | None = None
        self.resume: asyncio.Future[None] | None = None
        """Set while a call whose input was changed waits to start a second time."""
        self.stop_reason: AbortReason | None = None
        self.blame = ""
        self.outcome: Outcome | None = None
        self.waiter: asyncio.Future[None] | None = None
        """Set while someone waits for this outcome alone."""
        self.left = ""
        """What its tool left for the result when it was stopped."""
        self.progress: tuple[Progress, ...] = ()
        """Its latest progress, for cards."""
        self.on_progress: ProgressCallback | None = None

    def move(self, to: CallState) -> None:
        """Change the state as `MOVES` permits."""
        assert to in MOVES[self.state], f"{self.use.id}: {self.state.name} -> {to.name}"
        self.state = to

    def stop(self, reason: AbortReason, blame: str = "") -> None:
        """Record that it should stop; of several reasons the strongest is kept."""
        if self.stop_reason is None or reason.outweighs(self.stop_reason):
            self.stop_reason, self.blame = reason, blame

    def leave(self, text: str) -> None:
        """Keep what its tool leaves for the result, because it is about to be stopped."""
        self.left = text

    @property
    def unfinished(self) -> bool:
        """Whether it has no outcome yet."""
        return self.state < CallState.COMPLETED

    @property
    def alone(self) -> bool:
        """Whether nothing may run beside it but calls of its group."""
        return WORLD in self.footprint.writes

    @property
    def summary(self) -> str:
        """A summary of the call, for messages."""
        if self.tool is None or self.problem is not None:
            return self.use.name
        return short(self.tool, self.args)

    @property
    def stops_on_submit(self) -> bool:
        """Whether a new message of the user stops it."""
        behaviour = self.tool.interrupt if self.tool else None
        return self.read_only if behaviour is None else behaviour == "cancel"

    @property
    def timings(self) -> Timings:
        """Seconds in each stage that was reached."""
        marks = self.marks
        return Timings(*map(sub, marks[1:], marks))
