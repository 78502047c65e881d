"""Questions and answers over lines: in any order, in both directions, and never without an end."""

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.errors import ClosedError, ControlError, HandrailError
from handrail.headless.control import Control, Handler, Payload
from handrail.testing import run_virtual

pytestmark = pytest.mark.anyio


class Kept:
    """An output that keeps its lines; with `gone` nobody reads it."""

    def __init__(self) -> None:
        self.lines: list[Mapping[str, Any]] = []
        self.gone = False

    async def send(self, line: Mapping[str, Any]) -> None:
        if self.gone:
            raise ClosedError("gone")
        self.lines.append(line)


async def nobody(_name: str) -> Handler | None:
    return None


def success(request_id: str, **response: Any) -> Payload:
    return {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request_id, "response": response},
    }


@given(st.permutations(range(5)))
@settings(deadline=None)
def test_answers_find_their_questions_in_whatever_order_they_come(order: list[int]) -> None:
    async def play() -> list[Payload]:
        out = Kept()
        control = Control(out, nobody)
        asking = [asyncio.create_task(control.ask("can_use_tool", number=number)) for number in range(5)]
        await anyio.wait_all_tasks_blocked()
        for place in order:
            line = out.lines[place]
            control.hear(success(line["request_id"], number=line["request"]["number"]))
            control.hear(success(line["request_id"], number="a second answer is not heard"))
        return list(await asyncio.gather(*asking))

    assert anyio.run(play) == [{"number": number} for number in range(5)]


def test_a_question_that_nobody_answers_ends_when_its_time_is_over_and_is_taken_back() -> None:
    async def play() -> list[Mapping[str, Any]]:
        out = Kept()
        with pytest.raises(ControlError, match="the client did not answer hook_callback within 60 s"):
            await Control(out, nobody, patience=60).ask("hook_callback", callback_id="x")
        return out.lines

    asked, cancelled = run_virtual(play())
    assert cancelled == {"type": "control_cancel_request", "request_id": asked["request_id"]}


async def test_a_question_that_became_moot_is_taken_back() -> None:
    out = Kept()
    control = Control(out, nobody)
    task = asyncio.create_task(control.ask("can_use_tool"))
    await anyio.wait_all_tasks_blocked()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert out.lines[-1]["type"] == "control_cancel_request"
    control.hear(success(out.lines[0]["request_id"]))  # too late, and not a problem


@pytest.mark.parametrize("when", ["before", "while it waits", "on sending"])
async def test_questions_to_somebody_who_has_gone_end_at_once(when: str) -> None:
    out = Kept()
    control = Control(out, nobody)
    out.gone = when == "on sending"
    if when == "before":
        control.close()
    task = asyncio.create_task(control.ask("can_use_tool"))
    await anyio.wait_all_tasks_blocked()
    if when == "while it waits":
        control.close()

    with pytest.raises(ControlError, match="has closed the connection"), anyio.fail_after(5):
        await task


async def test_an_error_of_the_other_side_is_an_error_here() -> None:
    out = Kept()
    control = Control(out, nobody)
    task = asyncio.create_task(control.ask("can_use_tool"))
    await anyio.wait_all_tasks_blocked()
    control.hear(
        {"type": "control_response", "response": {"subtype": "error", "request_id": "handrail_1", "error": "no"}}
    )
    with pytest.raises(ControlError, match=r"^no$"):
        await task


async def test_every_question_is_answered_also_one_that_is_not_known_or_not_understood() -> None:
    async def echo(request: Mapping[str, Any]) -> Payload:
        return {"said": request["text"]}

    async def refuse(_request: Mapping[str, Any]) -> Payload:
        raise HandrailError("this cannot be done now")

    async def silent(_request: Mapping[str, Any]) -> None:
        return None

    handlers: dict[str, Handler] = {"echo": echo, "refuse": refuse, "silent": silent}

    async def find(name: str) -> Handler | None:
        return handlers.get(name)

    out = Kept()
    control = Control(out, find)
    requests: list[Any] = [
        {"subtype": "echo", "text": "hi"},
        {"subtype": "echo"},
        {"subtype": "refuse"},
        {"subtype": "silent"},
        {"subtype": "dance"},
        {"subtype": ["x"]},
        {},
        "nonsense",
    ]
    for number, request in enumerate(requests):
        control.hear({"type": "control_request", "request_id": f"r{number}", "request": request})
    await control.wait_settled()

    answers = {line["response"]["request_id"]: line["response"] for line in out.lines}
    assert [answers[f"r{number}"]["subtype"] for number in range(len(requests))] == [
        "success", "error", "error", "success", "error", "error", "error", "error",
    ]  # fmt: skip
    assert answers["r0"]["response"] == {"said": "hi"}
    assert answers["r2"]["error"] == "this cannot be done now"
    assert "'dance'" in answers["r4"]["error"]


async def test_a_question_that_the_other_side_takes_back_is_stopped_and_not_answered() -> None:
    stopped = asyncio.Event()

    async def slow(_request: Mapping[str, Any]) -> Payload:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    async def find(_name: str) -> Handler | None:
        return slow

    out = Kept()
    control = Control(out, find)
    control.hear({"type": "control_request", "request_id": "r", "request": {"subtype": "slow"}})
    await anyio.wait_all_tasks_blocked()
    control.hear({"type": "control_cancel_request", "request_id": "r"})

    with anyio.fail_after(5):
        await stopped.wait()
        await control.wait_settled()
    assert out.lines == []


@given(
    st.dictionaries(
        st.sampled_from(["type", "request_id", "request", "response", "subtype"]),
        st.sampled_from(["control_request", "control_response", "control_cancel_request", "x", None, 3, {}, []]),
    )
)
@settings(deadline=None)
def test_no_line_breaks_the_protocol(line: dict[str, Any]) -> None:
    async def play() -> None:
        control = Control(Kept(), nobody)
        control.hear(line)
        await control.wait_settled()

    anyio.run(play)
