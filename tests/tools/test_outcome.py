"""Outcomes and events are records: complete from the start, and never changed."""

import dataclasses

import pytest

from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.tools.abort import AbortReason
from handrail.tools.context import Progress
from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import NO_TIME, REAL_FAILURES, Cause, Outcome, Status

USE = ToolUse("1", "Read", {})
OUTCOME = Outcome(USE, Status.OK, Cause.DONE, ToolResult("1", (Text("x"),)))
EVENTS: list[CallEvent] = [
    CallQueued(USE, 0.0),
    CallStarted(USE, 0.1),
    CallProgress(USE, Progress("half"), 0.2),
    CallFinished(OUTCOME, 0.3),
]


def test_every_reason_to_stop_a_call_is_a_cause_of_its_end() -> None:
    causes = {cause.value for cause in Cause}

    assert {reason.value for reason in AbortReason} <= causes


def test_only_a_call_that_ran_can_have_really_failed() -> None:
    assert {Cause.FAILED, Cause.CRASHED, Cause.TIMED_OUT} == REAL_FAILURES


@pytest.mark.parametrize("record", [OUTCOME, *EVENTS], ids=lambda record: type(record).__name__)
def test_records_cannot_be_changed(record: Outcome | CallEvent) -> None:
    for field in dataclasses.fields(record):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, field.name, None)
    assert OUTCOME.timings is NO_TIME
