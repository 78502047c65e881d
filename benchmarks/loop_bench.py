"""
The loop against a floor program (plain Python and httpx2 by hand), with a model server in a second process.

    python benchmarks/loop_bench.py

Prints ratios; the promise is beside each. Both sides take turns inside one run, and medians count.
"""

import asyncio
import contextlib
import gc
import io
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
from pydantic_core import to_json

from handrail import Agent, tool
from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.stream import Delta
from handrail.loop.events import BlockComplete, LoopEvent, RequestSent, ResultsComplete, RunEnded
from handrail.providers.choose import ModelOptions
from handrail.testing.wire_answers import Spoken, anthropic_events

DELTAS = 20_000
AT_ONCE = 10
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
SYSTEM = "You are careful. " * 200


# The model server. The first part of the path says what it plays: /turns-200-FILE/3/v1/messages


def body(*content: Text | ToolUse, piece: int = 0) -> bytes:
    """A whole answer."""
    return b"".join(anthropic_events(Spoken(content, "", "m", 1, 1, piece)))


def frame(data: bytes) -> bytes:
    """One chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Server:
    """Answers without looking at what it gets, so that it is never what is measured."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}
        self.sent: dict[str, float] = {}
        self.gaps: dict[str, list[float]] = {}
        self.first_byte = 0.0
        self.deltas = body(Text("word " * DELTAS), piece=5)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(length)
                arrived = time.monotonic()
                key = head.split(b" ")[1].decode()
                number = self.asked[key] = self.asked.get(key, 0) + 1
                if key in self.sent:
                    self.gaps.setdefault(key, []).append(arrived - self.sent[key])
                writer.write(HEAD)
                await self.answer(key.split("/")[1], number, arrived, writer, self.gaps.get(key, []))
                writer.write(b"0\r\n\r\n")
                await writer.drain()
                self.sent[key] = time.monotonic()
        writer.close()

    async def answer(
        self, what: str, number: int, arrived: float, writer: asyncio.StreamWriter, gaps: list[float]
    ) -> None:
        """One answer."""
        kind, count, path = what.split("-", 2)
        if kind == "deltas":
            for at in range(0, len(self.deltas), 16_384):
                writer.write(frame(self.deltas[at : at + 16_384]))
        elif kind == "overlap" and number == 1:
            events = list(anthropic_events(Spoken((ToolUse("c", "slow", {}), Text("x" * 15)), "", "m", 1, 1, 1)))
            self.first_byte = time.monotonic()
            writer.write(frame(b"".join(events[:5])))
            for at, event in enumerate(events[5:], 1):
                await asyncio.sleep(self.first_byte + 1.5 * at / len(events[5:]) - time.monotonic())
                writer.write(frame(event))
        elif kind == "overlap":
            writer.write(frame(body(Text(json.dumps({"first_byte": self.first_byte, "next_request": arrived})))))
        elif kind == "reads" and number <= int(count):
            folder = bytes.fromhex(path).decode()
            names = (f"{folder}/{number * AT_ONCE + at}.txt" for at in range(AT_ONCE))
            calls = [ToolUse(f"c{number}-{at}", "Read", {"file_path": name}) for at, name in enumerate(names)]
            writer.write(frame(body(Text("I read them."), *calls)))
        elif kind == "reads":
            writer.write(frame(body(Text(json.dumps(gaps)))))
        elif number <= int(count):
            call = ToolUse(f"c{number}", "Read", {"file_path": bytes.fromhex(path).decode()})
            writer.write(frame(body(Text("I read it."), call)))
        else:
            writer.write(frame(body(Text("Done."))))


async def serve() -> None:
    """Until killed."""
    server = await asyncio.start_server(Server().handle, "127.0.0.1", 0, limit=1 << 26)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# The floor: what one would write by hand for exactly this


SCHEMA = {"name": "Read", "description": "Read a file.", "input_schema": {"type": "object", "properties": {}}}


def read(call: Any) -> str:
    """The tool."""
    return Path(call["input"]["file_path"]).read_text()


async def by_hand(client: httpx2.AsyncClient, url: str, out: io.TextIOBase) -> list[float]:
    """A loop with one tool; the moments at which its requests began."""
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    request = {
        "model": "m",
        "max_tokens": 99,
        "stream": True,
        "system": SYSTEM,
        "tools": [SCHEMA],
        "messages": messages,
    }
    moments: list[float] = []
    while True:
        moments.append(time.perf_counter())
        blocks: list[Any] = []
        parts: list[str] = []
        async with client.stream("POST", f"{url}/v1/messages", json=request) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data: "):
                    continue
                event = json.loads(line[6:])
                match event["type"]:
                    case "content_block_start":
                        blocks.append(event["content_block"])
                        parts = []
                    case "content_block_delta":
                        delta = event["delta"]
                        parts.append(delta.get("text") or delta.get("partial_json") or "")
                    case "content_block_stop":
                        if blocks[-1]["type"] == "tool_use":
                            blocks[-1]["input"] = json.loads("".join(parts) or "{}")
                        else:
                            blocks[-1]["text"] = "".join(parts)
                        out.write(json.dumps(blocks[-1]) + "\n")
        messages.append({"role": "assistant", "content": blocks})
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": read(block)}
            for block in blocks
            if block["type"] == "tool_use"
        ]
        if not results:
            moments.append(time.perf_counter())
            return moments
        out.write(json.dumps(results) + "\n")
        messages.append({"role": "user", "content": results})


# Ours


def shown(event: LoopEvent, out: io.TextIOBase) -> None:
    """What a front end would write."""
    match event:
        case BlockComplete():
            out.write(to_json(event.block).decode() + "\n")
        case ResultsComplete():
            out.write(to_json(event.message).decode() + "\n")
        case _:
            pass


def an_agent(url: str, **options: Any) -> Agent:
    """An agent of that server."""
    return Agent(ModelOptions("anthropic", "m", url), env={}, system_prompt=SYSTEM, **options)


async def ours(agent: Agent, out: io.TextIOBase) -> list[float]:
    """The same as the floor; the moments at which requests began."""
    moments: list[float] = []
    async for event in agent.run("Go."):
        shown(event, out)
        if isinstance(event, RequestSent | RunEnded):
            moments.append(time.perf_counter())
    return moments


def report(what: str, mine: float, base: float, promise: float, unit: float, name: str) -> None:
    """One line."""
    verdict = "ok" if mine / base <= promise else "TOO SLOW"
    figures = f"{mine * unit:9.3f} {name}  against {base * unit:9.3f}  ratio {mine / base:5.2f}"
    print(f"{what:<48} {figures}  (at most {promise})  {verdict}")


def turn_time(rounds: list[list[float]], first: int, last: int) -> float:
    """The median over turns first to last of each turn's best time: what others do on the machine is left out."""
    best = [min(moments[n + 1] - moments[n] for moments in rounds) for n in range(first, last)]
    return statistics.median(best)


async def turns(url: str, path: Path, count: int = 210, rounds: int = 9) -> None:
    """One trivial read per turn."""
    out = io.StringIO()
    what = f"turns-{count}-{str(path).encode().hex()}"
    mine: list[list[float]] = []
    base: list[list[float]] = []
    async with httpx2.AsyncClient(timeout=60) as client:
        for number in range(rounds):
            base.append(await by_hand(client, f"{url}/{what}/floor{number}", out))
            async with an_agent(f"{url}/{what}/ours{number}", cwd=path.parent) as agent:
                mine.append(await ours(agent, out))
            out.truncate(0)
            out.seek(0)
    early = turn_time(mine, 5, 15)
    late = turn_time(mine, 195, 205)
    early_floor = turn_time(base, 5, 15)
    late_floor = turn_time(base, 195, 205)
    report("a turn with one read (turn 10), against floor", early, early_floor, 2.5, 1e3, "ms")
    report("a turn with one read (turn 200), against floor", late, late_floor, 2.5, 1e3, "ms")
    report("turn 200 against turn 10", late, early, 1.2, 1e3, "ms")
    print(f"{'floor: turn 200 against turn 10':<48} ratio {late_floor / early_floor:5.2f}")


async def reads(url: str, folder: Path, count: int = 30, rounds: int = 7) -> None:
    """Ten reads in one turn: from the last byte of the answer to the next request, as the server sees it."""
    for number in range((count + 1) * AT_ONCE):
        (folder / f"{number}.txt").write_text(f"a line of file {number}\n" * 100)
    what = f"reads-{count}-{str(folder).encode().hex()}"
    sides: tuple[list[float], list[float]] = ([], [])
    async with httpx2.AsyncClient(timeout=60) as client:
        for number in range(rounds):
            out = io.StringIO()
            await by_hand(client, f"{url}/{what}/floor{number}", out)
            said = json.loads(out.getvalue().splitlines()[-1])["text"]
            sides[1].extend(json.loads(said)[5:])
            async with an_agent(f"{url}/{what}/ours{number}", cwd=folder) as agent:
                sides[0].extend(json.loads((await agent.ask("Go.")).text)[5:])
    mine, base = (statistics.quantiles(side, n=4)[0] for side in sides)
    report("ten reads, last byte to next request", mine, base, 2.0, 1e3, "ms")


async def deltas(url: str) -> None:
    """A long answer in small pieces."""
    out = io.StringIO()

    async def mine() -> None:
        async with an_agent(f"{url}/deltas-0-0/ours", builtin_tools=False) as agent:
            length = 0
            async for event in agent.run("Go."):
                if isinstance(event, Delta):
                    length += len(event.text)
            assert length == 5 * DELTAS

    async with httpx2.AsyncClient(timeout=60) as client:

        async def base() -> None:
            await by_hand(client, f"{url}/deltas-0-0/floor", out)

        seen = await alternating(7, mine, base)
    report(f"{DELTAS} deltas (per delta)", seen[0], seen[1], 2.5, 1e6 / DELTAS, "us")


async def alternating(rounds: int, *sides: Callable[[], Awaitable[None]]) -> list[float]:
    """The median seconds of each side, taking turns."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, seen in zip(sides, times, strict=True):
            start = time.perf_counter()
            await side()
            seen.append(time.perf_counter() - start)
    return [statistics.median(seen) for seen in times]


async def overlap(url: str) -> None:
    """A tool of 1.0 s, complete at the start of a stream of 1.5 s."""
    started: list[float] = []

    @tool(read_only=True)
    async def slow() -> str:
        """Take a second."""
        started.append(time.monotonic())
        await asyncio.sleep(1.0)
        return "done"

    async with an_agent(f"{url}/overlap-0-0/{time.monotonic()}", tools=[slow], builtin_tools=False) as agent:
        seen = json.loads((await agent.ask("Go.")).text)
    start, following = (started[0] - seen["first_byte"]) * 1e3, seen["next_request"] - seen["first_byte"]
    print(f"{'tool started after its block':<48} {start:9.3f} ms  (at most 10)  {'ok' if start <= 10 else 'TOO SLOW'}")
    verdict = "ok" if following <= 1.515 else "TOO SLOW"
    print(f"{'next request after the first byte':<48} {following:9.4f} s   (at most 1.515)  {verdict}")


def resident() -> int:
    """Bytes of this process in memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


async def memory(url: str, path: Path, count: int = 1_000) -> None:
    """What a thousand turns leave behind."""
    what = f"turns-{count}-{str(path).encode().hex()}"
    async with an_agent(f"{url}/{what}/memory", cwd=path.parent) as agent:
        first = 0
        async for event in agent.run("Go."):
            if isinstance(event, RequestSent) and event.turn == 10:
                gc.collect()
                first = resident()
        gc.collect()
        grown = resident() - first
        history = len(to_json(agent.messages))
    verdict = "ok" if grown <= history + 20_000_000 else "TOO MUCH"
    print(f"{f'{count} turns: memory grown':<48} {grown / 1e6:9.2f} MB  history {history / 1e6:.2f} MB  {verdict}")


def main() -> None:
    """All of it, or the parts named."""
    wanted = sys.argv[1:] or ["turns", "reads", "deltas", "overlap", "memory"]
    command = [sys.executable, __file__, "serve"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        path = Path(folder) / "file.txt"
        path.write_text("one\ntwo\nthree\n")
        parts: dict[str, Callable[[], Awaitable[None]]] = {
            "turns": lambda: turns(url, path),
            "reads": lambda: reads(url, Path(folder)),
            "deltas": lambda: deltas(url),
            "overlap": lambda: overlap(url),
            "memory": lambda: memory(url, path),
        }
        try:
            for part in wanted:
                asyncio.run(parts[part]())  # type: ignore[arg-type]  # each of them is a coroutine
        finally:
            server.kill()


if __name__ == "__main__":
    asyncio.run(serve()) if sys.argv[1:] == ["serve"] else main()
