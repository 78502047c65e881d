"""
What programs that drive handrail wait and pay for.

    python -m benchmarks.sdk_bench [--json]

From the start of the SDK's client (what `query()` does as well) to the first request that a model server on loopback
gets, with handrail and, where the SDK's wheel brings one, with its bundled program: ours may take half of that. Then
500 conversations at once in one process over loopback: no error, and CPU per turn at most 1.5 times that of a single
conversation.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import repeat
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from handrail.app.work import Work
from handrail.conversation.blocks import Text
from handrail.headless.embed import serve
from handrail.testing.model_server import ModelServer, Reply

STARTS, TURNS, CONVERSATIONS = 7, 4, 500
HANDRAIL = Path(sys.executable).with_name("handrail")
BUNDLED = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
ANSWER = Reply((Text("Hello."),))


async def first_request(program: Path) -> float:
    """Milliseconds from the call to the first request."""
    with tempfile.TemporaryDirectory() as home:
        async with ModelServer(repeat(ANSWER)) as server:
            env = variables(home, server.url)
            options = ClaudeAgentOptions(cli_path=program, cwd=home, env=env, stderr=lambda _line: None)
            began = time.perf_counter()
            async with ClaudeSDKClient(options) as client:
                await client.query("hi")
                while not server.requests:  # noqa: ASYNC110  # the server has no event for it, and 1 ms is exact enough
                    await asyncio.sleep(0.001)
                taken = time.perf_counter() - began
    return 1000 * taken


def variables(home: str, url: str) -> dict[str, str]:
    return {"HOME": home, "HANDRAIL_STATE_DIR": f"{home}/state", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"}


class Prompts:
    """The lines of a program that gives the next prompt when it has read the result before."""

    def __init__(self, turns: int) -> None:
        self._left = turns
        self._may = asyncio.Event()
        self._may.set()
        self.errors = 0

    async def next(self) -> bytes | None:
        await self._may.wait()
        self._may.clear()
        self._left -= 1
        prompt = {"type": "user", "message": {"role": "user", "content": "hi"}}
        return None if self._left < 0 else json.dumps(prompt).encode()

    async def send(self, line: Mapping[str, Any]) -> None:
        if line["type"] == "result":
            self.errors += bool(line["is_error"])
            self._may.set()


async def converse(url: str, home: str, conversations: int, turns: int) -> tuple[float, int]:
    """CPU milliseconds per turn of this process, and how many turns ended with an error."""
    env = {**variables(home, url), "PATH": os.environ["PATH"]}
    every = [Prompts(turns) for _ in range(conversations)]
    began = time.process_time()
    await asyncio.gather(*(serve(each, each, Work(cwd=Path(home)), env=env) for each in every))
    spent = 1000 * (time.process_time() - began)
    return spent / (conversations * turns), sum(each.errors for each in every)


def model(urls: "Queue[str]") -> None:
    """A model server in a process of its own, so that its work is not counted as ours."""

    async def run() -> None:
        async with ModelServer(repeat(ANSWER)) as server:
            urls.put(server.url)
            await asyncio.Event().wait()

    asyncio.run(run())


async def measured() -> dict[str, float]:
    """All figures."""
    await first_request(HANDRAIL)
    found = {"first_request_ms": statistics.median([await first_request(HANDRAIL) for _ in range(STARTS)])}
    if BUNDLED.exists():
        await first_request(BUNDLED)
        found["bundled_ms"] = statistics.median([await first_request(BUNDLED) for _ in range(STARTS)])
    urls: Queue[str] = Queue()
    server = Process(target=model, args=(urls,), daemon=True)
    server.start()
    url = urls.get()
    try:
        with tempfile.TemporaryDirectory() as home:
            await converse(url, home, 1, TURNS)
            single = [(await converse(url, home, 1, TURNS))[0] for _ in range(25)]
            many, errors = await converse(url, home, CONVERSATIONS, TURNS)
    finally:
        server.terminate()
        server.join()
    one = statistics.median(single)
    return {**found, "single_ms_per_turn": one, "many_ms_per_turn": many, "ratio": many / one, "errors": errors}


def main() -> int:
    """Print the figures; 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    found = asyncio.run(measured())
    if as_json:
        print(json.dumps(found))
    else:
        print(f"SDK start to the first request     {found['first_request_ms']:7.0f} ms")
        if "bundled_ms" in found:
            print(f"  with the SDK's bundled program   {found['bundled_ms']:7.0f} ms")
        print(f"CPU per turn, one conversation     {found['single_ms_per_turn']:7.2f} ms")
        print(f"CPU per turn, {CONVERSATIONS} at once          {found['many_ms_per_turn']:7.2f} ms")
        print(f"ratio {found['ratio']:.2f} (at most 1.5), errors {found['errors']:.0f}")
    slow = "bundled_ms" in found and found["first_request_ms"] > found["bundled_ms"] / 2
    return int(slow or found["ratio"] > 1.5 or found["errors"] > 0)


if __name__ == "__main__":
    sys.exit(main())
