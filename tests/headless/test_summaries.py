"""Lines around a summary: that it begins is told before the model is asked for it, that it is over in any case."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import Text
from handrail.testing.model_server import Reply
from tests.headless.in_process import Line, Peer, of, peer

pytestmark = pytest.mark.anyio

LONG = "The tulips are red. " * 400
TOO_LONG = Reply(status=400, error="prompt is too long: 9 tokens")


def say(text: str, **more: Any) -> Reply:
    return Reply((Text(text),), **more)


def news(lines: list[Line]) -> list[str | None]:
    """What is told of summaries, in order."""
    kinds = ("status", "compact_boundary")
    return [line.get("status", "boundary") for line in lines if line.get("subtype") in kinds]


async def begun(p: Peer) -> None:
    while not of(await p.until("system"), "status"):
        pass


async def talked(p: Peer) -> None:
    for words in ("Tell me of tulips.", "Is that all?"):
        await p.turn(words)


@pytest.mark.parametrize("stopped", [False, True], ids=["it comes", "somebody interrupts"])
async def test_a_summary_is_told_of_while_it_is_being_made(tmp_path: Path, stopped: bool) -> None:
    gate = asyncio.Event()
    replies = [say(LONG), say("Yes."), say("Tulips: red.", gates={1: gate}), say("On.")]
    async with peer(tmp_path, replies) as p:
        await talked(p)
        start = len(p.seen)
        p.prompt("/compact")
        await begun(p)
        meanwhile = news(p.seen[start:])
        if stopped:
            p.say({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}})
        else:
            gate.set()
        await p.until("result")
        gate.set()

        assert meanwhile == ["compacting"]
        assert news(p.seen[start:]) == ["compacting", None, *([] if stopped else ["boundary"])]


@pytest.mark.parametrize(
    ("summary", "told", "asked"),
    [
        (say("Tulips: red."), ["compacting", None, "boundary"], 5),
        (Reply(status=400, error="too tired"), ["compacting", None], 4),
    ],
    ids=["it helps", "there is none"],
)
async def test_a_summary_that_makes_room_for_a_refused_request_is_told_of(
    tmp_path: Path, summary: Reply, told: list[str | None], asked: int
) -> None:
    async with peer(tmp_path, [say(LONG), say("Yes."), TOO_LONG, summary, say("Red.")]) as p:
        await talked(p)
        lines = await p.turn("Which colour?")

        assert news(lines) == told
        assert lines[-1]["is_error"] is (asked == 4)
        assert len(p.server.requests) == asked
        if asked == 4:
            await p.turn("Again?")  # takes the answer that is left


async def test_a_summary_that_a_hook_forbids_is_not_told_of(tmp_path: Path) -> None:
    async with peer(tmp_path, [say(LONG), say("Yes.")]) as p:
        await p.ask("initialize", hooks={"PreCompact": [{"hookCallbackIds": ["pre"]}]})
        await talked(p)
        start = len(p.seen)
        p.prompt("/compact")
        asked = (await p.until("control_request"))[-1]
        answer = {"subtype": "success", "request_id": asked["request_id"], "response": {"decision": "block"}}
        p.say({"type": "control_response", "response": answer})
        await p.until("result")

        assert news(p.seen[start:]) == []
