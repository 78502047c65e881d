"""A run as a person sees it, drawn from events."""

import io
from collections.abc import Iterable

import pytest
from tests.on_terminal import rendered

from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.stream import BlockEnd, BlockStart, Delta
from handrail.loop.events import LoopEvent, RunEnded
from handrail.loop.state import Move, Why
from handrail.tools.call_report import call_report
from handrail.tools.events import CallFinished, CallQueued, CallStarted
from handrail.tools.outcome import Cause, Outcome, Status, Timings
from handrail.tools.permission import Decision, Opinion, Strength, Verdict
from handrail.tui.run_view import RunView
from handrail.tui.screen import Screen

pytestmark = pytest.mark.anyio

XTERM = {"TERM": "xterm", "COLUMNS": "60"}
FAST, SLOW = ToolUse("1", "Fast", {"path": "a"}), ToolUse("2", "Slow", {"path": "b"})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def finished(use: ToolUse, status: Status = Status.OK, *, seconds: float = 0.0) -> CallFinished:
    decision = Decision(
        Verdict.ALLOW, "a rule", (Opinion(Strength.ALLOW, Verdict.ALLOW, "allow rules", "a rule", "s:3"),)
    )
    result = ToolResult(use.id, (Text("no such file"),))
    outcome = Outcome(use, status, Cause.DONE, result, decision=decision, timings=Timings(ran=seconds))
    return CallFinished(outcome, 0.0)


def drawn(events: Iterable[LoopEvent], env: dict[str, str], **how: object) -> str:
    terminal = Terminal()
    view = RunView(Screen(terminal, terminal, env), **how)  # type: ignore[arg-type]  # given by the test
    for event in events:
        view.on_event(event)
    view.close()
    return terminal.getvalue()


RUN: list[LoopEvent] = [
    CallQueued(FAST, 0.0),
    CallStarted(FAST, 0.0),
    BlockStart(0, "text"),
    Delta(0, "Half a sentence, "),
    finished(FAST, Status.ERROR),
    Delta(0, "and its end."),
    BlockEnd(0, Text("Half a sentence, and its end.")),
    RunEnded(Move.STOPPED, Why.COMPLETED, "Half a sentence, and its end."),
]


async def test_a_line_about_a_call_waits_for_the_end_of_the_paragraph() -> None:
    assert drawn(RUN, XTERM) == ("Half a sentence, and its end.\n\x1b[31m- Fast: error\x1b[0m\n")


@pytest.mark.parametrize("env", [{**XTERM, "NO_COLOR": "1"}, {**XTERM, "TERM": "dumb"}, {"COLUMNS": "60"}])
async def test_colours_are_left_out_where_they_are_not_wanted(env: dict[str, str]) -> None:
    assert "\x1b[31m" in drawn(RUN, XTERM)
    assert "\x1b" not in drawn(RUN, env)


async def test_half_a_line_end_is_not_shown_and_an_answer_without_pieces_is() -> None:
    text = "one\r\ntwo"
    pieces: list[LoopEvent] = [BlockStart(0, "text"), Delta(0, "one\r"), Delta(0, "\ntwo"), BlockEnd(0, Text(text))]
    whole: list[LoopEvent] = [RunEnded(Move.STOPPED, Why.COMPLETED, text)]

    assert drawn([*pieces, *whole], XTERM) == drawn(whole, XTERM) == "one\ntwo\n"


async def test_details_say_input_decision_and_stages() -> None:
    events: list[LoopEvent] = [CallQueued(SLOW, 0.0), finished(SLOW, seconds=2.5)]

    assert drawn(events, XTERM, details=call_report).splitlines() == [
        "- Slow: ok (2 s)",
        '    input: {"path": "b"}',
        "    decision: allow, a rule",
        "    - allow rules: s:3",
        "    stages: queued 0 ms, validated 0 ms, decided 0 ms, ran",
        "      2500 ms, fitted 0 ms",
    ]


async def test_the_status_line_is_redrawn_in_place_and_leaves_no_trace() -> None:
    terminal = Terminal()
    screen = Screen(terminal, terminal, XTERM)

    screen.status("> waiting, 1 s")
    screen.status("> waiting, 2 s")
    screen.write("handrail: a warning\n")
    assert rendered(terminal.getvalue()) == "handrail: a warning\n> waiting, 2 s"
    screen.answer("The answer")
    assert rendered(terminal.getvalue()) == "handrail: a warning\nThe answer"
    screen.write("handrail: another\n")
    screen.status("")

    assert rendered(terminal.getvalue()) == "handrail: a warning\nThe answer\nhandrail: another\n"


async def test_everything_else_waits_while_a_question_is_on_the_screen() -> None:
    terminal = Terminal()
    screen = Screen(terminal, terminal, XTERM)
    screen.status("> running, 1 s")

    with screen.question() as write:
        write("Allow it? ")
        screen.answer("Meanwhile.\n")
        screen.write("handrail: a warning\n")
        screen.status("> running, 2 s")
        assert rendered(terminal.getvalue()) == "Allow it? "
        write("y\n")

    assert rendered(terminal.getvalue()) == "Allow it? y\nMeanwhile.\nhandrail: a warning\n> running, 2 s"
