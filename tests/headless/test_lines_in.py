"""Whatever a program writes: each prompt gets one result, each request one answer, and the conversation goes on."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import Text
from handrail.stdio.streams import MAX_INCOMING
from handrail.testing.model_server import Reply
from tests.headless.in_process import peer

pytestmark = pytest.mark.anyio

FINE = Reply((Text("Fine."),))


def user(content: Any) -> bytes:
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}}).encode()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param(user(None), "neither a text nor a list", id="no content"),
        pytest.param(user({"a": 1}), "neither a text nor a list", id="an object"),
        pytest.param(user([{"type": "text"}]), "a part of it lacks 'text'", id="a text without text"),
        pytest.param(user([{"type": "riddle"}]), "riddle", id="an unknown part"),
        pytest.param(user(""), "empty", id="nothing"),
        pytest.param(user([{"type": "tool_result", "tool_use_id": "x"}]), "no call is waiting for one", id="a result"),
        pytest.param(b'{"type":"user"}', "no content", id="no message"),
        pytest.param(b'{"type":"user","message":"words"}', "no content", id="a message that is a text"),
        pytest.param(b'{"type":"user","message":{"cont', "not JSON", id="half a line"),
        pytest.param(b'{"type":"user","message":' + b"[" * 50_000, "not JSON", id="very deep"),
        pytest.param(b'{"type":"user",' + b" " * MAX_INCOMING, "too long", id="very long"),
    ],
)
async def test_what_was_meant_for_a_prompt_gets_a_result_that_says_what_is_wrong(
    tmp_path: Path, line: bytes, problem: str
) -> None:
    async with peer(tmp_path, [FINE]) as p:
        p.write(line)
        refused = (await p.until("result"))[-1]
        after = await p.turn("hi")

    assert (refused["is_error"], refused["num_turns"]) == (True, 0)
    assert problem in refused["result"]
    assert after[-1]["result"] == "Fine."


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe\x00", b"y" * 1_000_000, b"[]", b"{}", b'{"type":7}', b'{"type":"poem"}', b'"user"', b"  "],
    ids=["bytes", "very long", "a list", "no type", "a number for a type", "a poem", "a text", "blanks"],
)
async def test_what_is_nothing_is_passed_over(tmp_path: Path, line: bytes) -> None:
    async with peer(tmp_path, [FINE]) as p:
        p.write(line)
        lines = await p.turn("hi")

    assert [each["type"] for each in lines] == ["system", "assistant", "result"]


async def test_bytes_that_are_no_characters_do_not_lose_a_prompt(tmp_path: Path) -> None:
    async with peer(tmp_path, [FINE]) as p:
        p.write(user("before @ after").replace(b"@", b"\xff\xfe"))
        assert (await p.until("result"))[-1]["result"] == "Fine."
        assert "before \ufffd\ufffd after" in p.server.requests[0].raw.decode()


async def test_a_request_that_fails_by_a_fault_of_ours_is_answered_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_prompts: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("handrail.session.session.Session.context_usage", broken)
    async with peer(tmp_path, [FINE]) as p:
        answer = await p.ask("get_context_usage")
        after = await p.turn("hi")

    assert (answer["subtype"], "get_context_usage" in answer["error"]) == ("error", True)
    assert after[-1]["result"] == "Fine."


async def test_models_that_are_changed_while_they_answer_leave_no_connection_behind(tmp_path: Path) -> None:
    gates = [asyncio.Event() for _ in range(6)]
    counts: list[int] = []
    async with peer(tmp_path, [Reply((Text("Fine."),), gates={1: gate}) for gate in gates]) as program:
        for number, gate in enumerate(gates):
            program.prompt("go")
            await program.until("system")
            await program.ask("set_model", model=f"claude-{number}")
            gate.set()
            await program.until("result")
            counts.append(len([*Path("/dev/fd").iterdir()]))

    assert counts[-1] <= counts[1] + 1, counts
