"""The one terminal record of a call."""

from enum import Enum

from handrail.conversation.blocks import ToolResult, ToolUse
from handrail.records import record
from handrail.tools.access import EXCLUSIVE, Access
from handrail.tools.output import Output
from handrail.tools.permission import Decision


class Status(Enum):
    """How a call ended."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    DEFERRED = "deferred"


class Cause(Enum):
    """Why it ended that way."""

    DONE = "done"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_INPUT = "invalid_input"
    INCOMPLETE = "incomplete"
    REFUSED_INPUT = "refused_input"
    DENIED = "denied"
    FAILED = "failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    SIBLING_ERROR = "sibling_error"
    USER_INTERRUPTED = "user_interrupted"
    HOOK_STOPPED = "hook_stopped"
    HOOK_DEFERRED = "hook_deferred"
    SUBMIT_INTERRUPTED = "submit_interrupted"
    STREAMING_FALLBACK = "streaming_fallback"
    DONE_BEFORE = "done_before"
    OUTCOME_UNKNOWN = "outcome_unknown"
    CONFLICT = "conflict"


REAL_FAILURES = frozenset({Cause.FAILED, Cause.CRASHED, Cause.TIMED_OUT})
"""The tool ran and failed; a refused or malformed call does not count."""


@record
class Timings:
    """Seconds spent in each stage. A stage that was not reached took none."""

    queued: float = 0.0
    validated: float = 0.0
    decided: float = 0.0
    ran: float = 0.0
    fitted: float = 0.0


NO_TIME = Timings()


@record
class Outcome:
    """How one call ended: the result for the model, and the facts for front ends and logs."""

    use: ToolUse
    status: Status
    cause: Cause
    result: ToolResult
    output: Output | None = None
    decision: Decision | None = None
    timings: Timings = NO_TIME
    stop: str | None = None
    """Why a hook wants the run to end here; None = no hook does."""
    access: Access = EXCLUSIVE
    """What its tool declared when permission was asked."""
