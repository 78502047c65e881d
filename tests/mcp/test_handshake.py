"""Which revision a server speaks is found out with patience; a request that is no longer needed is cancelled there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from handrail.mcp import handshake
from handrail.mcp.handshake import greet
from handrail.mcp.messages import Message
from handrail.mcp.peer import ExchangeWire, Peer
from handrail.mcp.server import Server

pytestmark = pytest.mark.anyio

MODERN = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
LEGACY = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {}}
NO_METHOD = {"error": {"code": -32601, "message": "no such method"}}

Exchange = Callable[[Message], Awaitable[Message]]


def peer_with(exchange: Exchange) -> Peer:
    peer = Peer("s")
    return peer.attach(ExchangeWire(exchange, peer.receive))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "PATIENCE", 0.0)


async def test_an_old_server_that_says_nothing_to_the_new_question_is_greeted_in_the_old_way() -> None:
    async def exchange(message: Message) -> Message:
        if message["method"] == "server/discover":
            await asyncio.Event().wait()
        return {"result": LEGACY}

    with anyio.fail_after(10):
        welcome = await greet(peer_with(exchange), {}, time_limit=5.0)
    assert (welcome.era, welcome.version) == ("legacy", "2025-06-18")


async def test_a_new_server_that_is_slow_to_start_is_not_taken_for_an_old_one() -> None:
    refused = asyncio.Event()

    async def exchange(message: Message) -> Message:
        if message["method"] == "server/discover":
            await refused.wait()
            return {"result": MODERN}
        refused.set()
        return dict(NO_METHOD)

    peer = peer_with(exchange)
    with anyio.fail_after(10):
        welcome = await greet(peer, {}, time_limit=5.0)
    assert welcome.era == "modern"
    assert peer.dialect.is_modern


@pytest.mark.parametrize("known", [None, "legacy"])
async def test_a_server_that_was_renewed_is_met_as_it_is_now(known: Any) -> None:
    async def exchange(message: Message) -> Message:
        return {"result": MODERN} if message["method"] == "server/discover" else dict(NO_METHOD)

    with anyio.fail_after(10):
        assert (await greet(peer_with(exchange), {}, time_limit=5.0, known=known)).era == "modern"


async def test_a_call_that_is_stopped_is_cancelled_at_the_server() -> None:
    sent: list[Message] = []
    called, told = asyncio.Event(), asyncio.Event()

    async def exchange(message: Message) -> Message:
        sent.append(message)
        match message["method"]:
            case "tools/call":
                called.set()
                await asyncio.Event().wait()
            case "notifications/cancelled":
                told.set()
        return {"result": LEGACY}

    with anyio.fail_after(10):
        peer = peer_with(exchange)
        server = Server(peer, await greet(peer, {}, time_limit=5.0, known="legacy"))
        call = asyncio.ensure_future(server.call("t", {}, "1", lambda _news: None))
        await called.wait()
        call.cancel()
        await told.wait()
        await peer.aclose()

    request = next(each for each in sent if each["method"] == "tools/call")
    assert sent[-1]["params"]["requestId"] == request["id"]
