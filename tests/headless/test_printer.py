"""What people see of a run, and what programs get."""

import io
import json
from typing import Any

import pytest

from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.plain import plain
from handrail.conversation.stream import StreamFailure, StreamRetry
from handrail.headless.lines import Lines
from handrail.headless.printer import printer_for
from handrail.headless.wire import jsonable
from handrail.loop.events import Denial, LoopEvent, Notice, RunEnded
from handrail.loop.state import Move, Why
from handrail.tools.events import CallFinished
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tools.output import McpMeta, Output

EVIL = "a\x1b]0;title\x07b\u202ec"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(event: LoopEvent, form: str, out: io.StringIO) -> tuple[str, str]:
    errors = io.StringIO()
    printer_for(form, Lines("s"), out, errors).on_event(event)  # type: ignore[arg-type]  # a literal, given by the test
    return out.getvalue(), errors.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb", "a\\rb"),
        ("line\r\nend", "line\nend"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eevil", "\\u202eevil"),
        ("日本語 é", "日本語 é"),
    ],
)
def test_what_could_steer_a_terminal_is_made_visible(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_terminal_gets_plain_text_and_a_pipe_gets_what_was_said() -> None:
    ended = RunEnded(Move.STOPPED, Why.COMPLETED, EVIL)

    assert told(ended, "text", Terminal()) == ("a\\x1b]0;title\\x07b\\u202ec\n", "")
    assert told(ended, "text", io.StringIO()) == (f"{EVIL}\n", "")


def test_an_error_of_a_server_cannot_steer_the_terminal() -> None:
    failure = StreamFailure("server", f"bad {EVIL}", retryable=False, status=500)
    ended = RunEnded(Move.ERROR, Why.MODEL_FAILED, failure=failure)

    _, errors = told(ended, "text", io.StringIO())

    assert "\x1b" not in errors
    assert errors.startswith("handrail: bad a\\x1b")


def test_a_limit_is_told_in_words() -> None:
    ended = RunEnded(Move.LIMIT, Why.MAX_TURNS, turns=2000)

    assert told(ended, "text", io.StringIO()) == (
        "",
        "handrail: the limit of 2,000 turns was reached\nhandrail: --max-turns N sets another limit\n",
    )
    assert json.loads(told(ended, "json", io.StringIO())[0])["terminal_reason"] == "max_turns"


def test_an_empty_answer_is_told() -> None:
    assert told(RunEnded(Move.STOPPED, Why.COMPLETED), "text", io.StringIO()) == (
        "",
        "handrail: the model gave an empty answer\n",
    )


def test_half_a_character_does_not_break_a_line() -> None:
    out, _ = told(RunEnded(Move.STOPPED, Why.COMPLETED, "half \ud83d"), "stream-json", io.StringIO())

    assert json.loads(out)["result"].startswith("half ")


def test_the_person_is_told_what_was_refused() -> None:
    denials = tuple(Denial(ToolUse(str(n), "Write", {}), f"no rule allows {n}") for n in range(7))

    out, errors = told(RunEnded(Move.STOPPED, Why.COMPLETED, "Done.", denials=denials), "text", io.StringIO())

    assert out == "Done.\n"
    assert errors.splitlines() == [
        *(f"handrail: Write was refused: no rule allows {n}" for n in range(5)),
        "handrail: 2 more calls were refused",
    ]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (
            StreamRetry(StreamFailure("connection", "no connection to x", retryable=True), 2, 0.52, "some-model"),
            "handrail: no connection to x. Trying again in 0.5 seconds.\n",
        ),
        (Notice("the limit cannot be kept"), "handrail: the limit cannot be kept\n"),
    ],
)
def test_the_person_is_told_what_holds_the_run_up(event: LoopEvent, says: str) -> None:
    assert told(event, "text", io.StringIO()) == ("", says)
    assert told(event, "json", io.StringIO()) == ("", "")


def circle() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize("data", [{"\ud800": "\ud800"}, json.loads("[" * 900 + "]" * 900), circle()])
def test_data_of_a_tool_that_json_cannot_hold_is_told_in_words(data: object) -> None:
    assert "data that JSON cannot hold" in json.dumps(jsonable(data))


def test_the_one_object_has_the_session_and_an_id() -> None:
    line = json.loads(told(RunEnded(Move.STOPPED, Why.COMPLETED, "Yes."), "json", io.StringIO())[0])

    assert (line["type"], line["result"], line["session_id"]) == ("result", "Yes.", "s")
    assert line["uuid"]


@pytest.mark.proves("D9")
def test_what_a_server_sent_beside_its_content_reaches_programs_unchanged() -> None:
    use = ToolUse("1", "mcp__shop__price", {})
    data = {"content": [{"type": "text", "text": "7"}]}
    output = Output(text="7", data=data, mcp=McpMeta({"trace": "t1"}, {"price": 7}))
    outcome = Outcome(use, Status.OK, Cause.DONE, ToolResult("1", (Text("7"),)), output)

    out, _ = told(CallFinished(outcome, 0.0), "stream-json", io.StringIO())

    line = json.loads(out)
    assert line["tool_use_result"] == {**data, "_meta": {"trace": "t1"}, "structuredContent": {"price": 7}}
