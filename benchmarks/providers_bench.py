"""
Providers against a floor program (plain Python and httpx2 by hand), with a model server in a second process.

    python -m benchmarks.providers_bench      from the folder of the project

Prints ratios; the promise is beside each. Both sides take turns inside one run, and the median counts.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
from benchmarks import floor

from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.conversation.request import History, Request
from handrail.conversation.stream import BlockEnd, Delta
from handrail.providers.choose import Choice, open_provider
from handrail.providers.client import Provider
from handrail.testing.wire_answers import ScriptedAnswer, anthropic_events, chat_events

HERE = Path(__file__).parent
DELTAS = 20_000
FRAGMENTS = 6_000
ARGUMENT = 60_000


def answers() -> dict[str, bytes]:
    """The bodies the server can give, by the model asked for."""
    argument = {"content": "x" * (ARGUMENT - len('{"content": ""}'))}

    def scripted(content: Text | ToolUse, piece: int) -> ScriptedAnswer:
        return ScriptedAnswer((content,), "", "m", 1, 1, piece)

    def body(content: Text | ToolUse, piece: int) -> bytes:
        return b"".join(anthropic_events(scripted(content, piece)))

    call = ToolUse("a", "Write", argument)

    return {
        "m": body(Text("Hello"), 0),
        "deltas": body(Text("word " * DELTAS), 5),
        "argument": body(call, ARGUMENT // FRAGMENTS),
        "chat argument": b"".join(chat_events(scripted(call, ARGUMENT // FRAGMENTS))),
    }


async def serve() -> None:
    """The model server: one write per answer, so that it is never what is measured."""
    bodies = answers()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                model = json.loads(await reader.readexactly(length))["model"]
                body = bodies[model]
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                for at in range(0, len(body), 16_384):
                    part = body[at : at + 16_384]
                    writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def median_of(rounds: int, *sides: Callable[[], Awaitable[None]]) -> list[float]:
    """Seconds of each side, taking turns."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, seen in zip(sides, times, strict=True):
            start = time.perf_counter()
            await side()
            seen.append(time.perf_counter() - start)
    return [statistics.median(seen) for seen in times]


def report(what: str, ours: float, base: float, promise: float, unit: float, name: str) -> None:
    """One line."""
    verdict = "ok" if ours / base <= promise else "TOO SLOW"
    figures = f"{ours * unit:9.2f} {name}  floor {base * unit:9.2f}  ratio {ours / base:5.2f}"
    print(f"{what:<46} {figures}  (at most {promise})  {verdict}")


async def streams(url: str) -> None:
    """Deltas and a long argument."""
    provider = open_provider(Choice("anthropic", "m", url), {})
    chat = open_provider(Choice("openai", "m", f"{url}/v1"), {})

    async def ours(model: str, provider: Provider = provider) -> None:
        texts: list[str] = []
        calls: list[object] = []
        async for event in provider.stream(Request(model, History([UserMessage((Text("Hi"),))]))):
            if isinstance(event, Delta):
                texts.append(event.text)
            elif isinstance(event, BlockEnd):
                calls.append(event.block)
        assert len("".join(texts)) in {5 * DELTAS, ARGUMENT}

    async with httpx2.AsyncClient() as client:

        async def by_hand(model: str) -> None:
            floor.BODY["model"] = model
            text, calls = await floor.ask(client, url)
            assert calls or len(text) == 5 * DELTAS

        for model, what, promise, parts in [
            ("deltas", f"{DELTAS} text deltas (per delta)", 2.5, DELTAS),
            ("argument", f"{ARGUMENT} byte argument in {FRAGMENTS} pieces", 2.0, 0),
        ]:
            mine, base = await median_of(9, lambda m=model: ours(m), lambda m=model: by_hand(m))  # type: ignore[misc]
            unit, name = (1e6 / parts, "us") if parts else (1e3, "ms")
            report(what, mine, base, promise, unit, name)
    mine, base = await median_of(9, lambda: ours("chat argument", chat), lambda: ours("argument"))
    report("the same in the chat format, beside Anthropic's", mine, base, 1.7, 1e3, "ms")  # 1.4 times the bytes
    await provider.aclose()
    await chat.aclose()


async def turns(url: str) -> None:
    """Writing requests with a growing history: turn 200 against turn 10."""
    provider: Provider = open_provider(Choice("anthropic", "m", url), {})
    history = History([UserMessage((Text("Hi"),))])
    seen: list[float] = []
    for turn in range(210):
        history.append(AssistantMessage((ToolUse(f"c{turn}", "Read", {"path": "/tmp/x"}),)))
        history.append(UserMessage((ToolResult(f"c{turn}", (Text("line\n" * 40),)),)))
        request = Request("m", history, ("You are careful.",))
        start = time.perf_counter()
        provider.build_request(request, stream=True)
        seen.append(time.perf_counter() - start)
    early, late = statistics.median(seen[5:15]), statistics.median(seen[195:205])
    print(f"writing a request: turn 10 {early * 1e6:.0f} us, turn 200 {late * 1e6:.0f} us")


def starts(url: str) -> None:
    """Process start to the end of a first request."""
    programs = {"ours": HERE / "first_request.py", "floor": HERE / "floor.py"}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(15):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, program, url], check=True, stdout=subprocess.DEVNULL, env=os.environ)
            times[name].append(time.perf_counter() - start)
    mine, base = statistics.median(times["ours"]), statistics.median(times["floor"])
    report("process start to answered first request", mine, base, 1.15, 1e3, "ms")


def main() -> None:
    """All of it."""
    command = [sys.executable, "-m", "benchmarks.providers_bench", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        try:
            asyncio.run(streams(url))
            asyncio.run(turns(url))
            starts(url)
        finally:
            server.kill()


if __name__ == "__main__":
    asyncio.run(serve()) if sys.argv[1:] == ["serve"] else main()
