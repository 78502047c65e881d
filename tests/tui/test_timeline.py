"""The timeline, drawn from events."""

import pytest

from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.tools.context import Progress
from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tui.timeline import Row, Span, Talk, draw, spans

READ, WRITE, NEVER = (ToolUse(name, name, {}) for name in ("Read", "Write", "Never"))


def ended(use: ToolUse, status: Status) -> Outcome:
    return Outcome(use, status, Cause.DONE, ToolResult(use.id, (Text(""),)))


EVENTS: list[CallEvent] = [
    CallQueued(READ, 0.0),
    CallStarted(READ, 0.0),
    CallProgress(READ, Progress("half"), 0.2),
    CallQueued(WRITE, 0.1),
    CallQueued(NEVER, 0.1),
    CallFinished(ended(NEVER, Status.CANCELLED), 0.3),
    CallFinished(ended(READ, Status.OK), 0.4),
    CallStarted(WRITE, 0.5),
    CallFinished(ended(WRITE, Status.ERROR), 1.0),
]


def test_each_call_becomes_a_row_in_the_order_of_the_calls() -> None:
    assert spans(EVENTS, {"Read": "Read a.py"}) == [
        Span("Read a.py", 0.0, 0.0, 0.4, "ok"),
        Span("Write", 0.1, 0.5, 1.0, "error"),
        Span("Never", 0.1, None, 0.3, "cancelled"),
    ]


def test_rows_show_waiting_running_and_what_is_remarkable() -> None:
    drawn = draw([Talk(0.0, 0.5), *spans(EVENTS, {})], width=48)

    assert drawn.splitlines() == [
        "model  ▒▒▒▒▒▒▒▒▒▒               500 ms streaming",
        "Read   ████████                 400 ms early",
        "Write    ········██████████     500 ms error",
        "Never    ····█                    0 ms cancelled",
        "       0            1000 ms",
        "       ▒ the model talks   · waits   █ runs",
    ]


def test_calls_are_compared_with_the_answer_they_belong_to() -> None:
    rows: list[Row] = [
        Talk(0.0, 0.1),
        Span("one", 0.1, 0.2, 0.4, "ok"),
        Talk(0.4, 1.0),
        Span("two", 0.5, 0.5, 0.6, "ok"),
    ]

    drawn = draw(rows, width=60).splitlines()

    assert not drawn[1].endswith("early")
    assert drawn[3].endswith("early")


def test_an_answer_without_calls_and_without_time_can_be_drawn() -> None:
    assert draw([Talk(0.0)], width=40).splitlines()[0].startswith("model  ▒")


def test_a_long_label_is_cut() -> None:
    drawn = draw([Talk(0.0, 1.0), Span("x" * 80, 0.0, 0.0, 1.0, "ok")], width=80)

    assert drawn.splitlines()[1].startswith("x" * 31 + "...  ")


@pytest.mark.parametrize("width", [48, 60, 80, 100, 200])
def test_no_line_is_wider_than_asked_for(width: int) -> None:
    rows: list[Row] = [
        Talk(0.0, 12.0),
        Span("x" * 80, 0.0, 0.0, 1.0, "ok"),
        Span("y" * 80, 0.0, None, 1.0, "discarded"),
    ]

    assert max(map(len, draw(rows, width).splitlines())) == width
