"""What programs and people hear of hooks."""

import io
import json
from typing import Any

import pytest

from handrail.conversation.blocks import ToolUse
from handrail.headless.lines import Lines
from handrail.headless.printer import printer_for
from handrail.hooks.news import HookNews
from handrail.loop.events import LoopEvent
from handrail.tools.events import CallProgress

STARTED = HookNews("Checking", None, "started", "PreToolUse", "./check.sh", "7")
RESPONSE = HookNews("", None, "response", "PreToolUse", "./check.sh", "7", "out", "err", 2, "error")
MESSAGE = HookNews("look at this", None, "message", "PreToolUse")


def lines(*events: LoopEvent, hook_events: bool) -> list[dict[str, Any]]:
    made = [line for event in events for line in Lines("s", hook_events=hook_events).of(event)]
    return [{key: value for key, value in line.items() if key != "uuid"} for line in made]


@pytest.mark.parametrize("of_a_call", [True, False])
def test_started_and_answered_hooks_are_lines_on_request(of_a_call: bool) -> None:
    news = [STARTED, RESPONSE, MESSAGE]
    events: list[LoopEvent] = [
        CallProgress(ToolUse("1", "Bash", {}), each, 0.0) if of_a_call else each for each in news
    ]
    about = {"type": "system", "hook_id": "7", "hook_name": "./check.sh", "hook_event": "PreToolUse", "session_id": "s"}
    said = {"subtype": "informational", "text": "look at this"}
    words = {"type": "system", **said, "hook_event": "PreToolUse", "session_id": "s"}

    assert lines(*events, hook_events=True) == [
        {**about, "subtype": "hook_started", "status_message": "Checking"},
        {
            **about,
            "subtype": "hook_response",
            "output": "outerr",
            "stdout": "out",
            "stderr": "err",
            "exit_code": 2,
            "outcome": "error",
        },
        words,
    ]
    assert lines(*events, hook_events=False) == [words]
    assert json.dumps(lines(*events, hook_events=True))


def test_what_a_hook_says_to_a_person_is_shown_beside_the_answer() -> None:
    out, errors = io.StringIO(), io.StringIO()
    printer = printer_for("text", Lines("s"), out, errors)
    for event in (STARTED, RESPONSE, MESSAGE, HookNews("a\x1b[2J")):
        printer.on_event(event)

    assert (out.getvalue(), errors.getvalue()) == ("", "handrail: look at this\nhandrail: a\\x1b[2J\n")
