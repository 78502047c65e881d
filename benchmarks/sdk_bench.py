"""
What programs that drive handrail wait and pay for.

    python -m benchmarks.sdk_bench [--json] [--bundled PROGRAM]

From the start of the SDK's client (what `query()` does as well) to the first request that a model server on loopback
gets, with handrail and, in turns with it, with the program that the SDK's platform wheel bundles: ours may take half
of that. The source distribution of the SDK has no such program: unpack a wheel and name it with `--bundled` or
SDK_BUNDLED. It is run without a network, so this starts itself again in a network namespace that has loopback only.

Then 500 conversations at once in one process over loopback: no error, and CPU per turn at most 1.2 times that of a
single conversation. The process calls `gc.freeze()` after its first conversation, as docs/sdk.md advises.
"""

import argparse
import asyncio
import gc
import json
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import repeat
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from handrail.conversation.blocks import Text
from handrail.headless.embed import serve
from handrail.session.spec import SessionSpec
from handrail.testing.model_server import ModelServer, Reply

STARTS, TURNS, CONVERSATIONS = 7, 4, 500
MOST = 1.2
HANDRAIL = Path(sys.executable).with_name("handrail")
BUNDLED = Path(os.environ.get("SDK_BUNDLED") or Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude")
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
    """A place of its own, the model on loopback, and nothing that would look for the world outside."""
    quiet = dict.fromkeys(("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1")
    here = {"HOME": home, "HANDRAIL_STATE_DIR": f"{home}/state", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"}
    return {**quiet, **here}


def alone(program: Path) -> None:
    """Start again where nothing but loopback can be reached, unless we are there."""
    if {name for _, name in socket.if_nameindex()} <= {"lo"}:
        return
    if not (bwrap := shutil.which("bwrap")):
        sys.exit(f"{program} is only run without a network, and that needs bubblewrap (bwrap).")
    inside = (bwrap, "--dev-bind", "/", "/", "--unshare-net", "--die-with-parent", sys.executable, "-m")
    os.execv(bwrap, [*inside, "benchmarks.sdk_bench", *sys.argv[1:]])


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
    await asyncio.gather(*(serve(each, each, SessionSpec(cwd=Path(home)), env=env) for each in every))
    spent = 1000 * (time.process_time() - began)
    return spent / (conversations * turns), sum(each.errors for each in every)


def model(urls: "Queue[str]") -> None:
    """A model server in a process of its own, so that its work is not counted as ours."""

    async def run() -> None:
        async with ModelServer(repeat(ANSWER)) as server:
            urls.put(server.url)
            await asyncio.Event().wait()

    asyncio.run(run())


async def starts(programs: Mapping[str, Path]) -> dict[str, float]:
    """The least and the median of several starts of each, taken in turns; the first of each warms it up."""
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(STARTS + 1):
        for name, program in programs.items():
            taken[name].append(await first_request(program))
    least = {f"{name}_min_ms": min(times[1:]) for name, times in taken.items()}
    return {**least, **{f"{name}_ms": statistics.median(times[1:]) for name, times in taken.items()}}


async def measured(bundled: Path | None) -> dict[str, float]:
    """All figures."""
    found = await starts({"first_request": HANDRAIL, **({"bundled": bundled} if bundled else {})})
    urls: Queue[str] = Queue()
    server = Process(target=model, args=(urls,), daemon=True)
    server.start()
    url = urls.get()
    try:
        with tempfile.TemporaryDirectory() as home:
            await converse(url, home, 1, TURNS)
            gc.freeze()
            single = [(await converse(url, home, 1, TURNS))[0] for _ in range(25)]
            many, errors = await converse(url, home, CONVERSATIONS, TURNS)
    finally:
        server.terminate()
        server.join()
    one = statistics.median(single)
    return {**found, "single_ms_per_turn": one, "many_ms_per_turn": many, "ratio": many / one, "errors": errors}


def told(found: Mapping[str, float], bundled: Path) -> Iterator[str]:
    """The figures for people."""
    ours, theirs = found["first_request_ms"], found.get("bundled_ms")
    yield f"SDK start to the first request     {ours:7.0f} ms, at best {found['first_request_min_ms']:.0f}"
    if theirs is None:
        yield f"  with the SDK's bundled program   not compared: there is no {bundled}"
    else:
        yield f"  with the SDK's bundled program   {theirs:7.0f} ms, at best {found['bundled_min_ms']:.0f}"
        yield f"  ratio                            {ours / theirs:7.2f} (at most 0.5)"
    yield f"CPU per turn, one conversation     {found['single_ms_per_turn']:7.2f} ms"
    yield f"CPU per turn, {CONVERSATIONS} at once          {found['many_ms_per_turn']:7.2f} ms"
    yield f"ratio {found['ratio']:.2f} (at most {MOST}), errors {found['errors']:.0f}"


def main() -> int:
    """Print the figures; 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bundled", type=Path, default=BUNDLED, help="the program that the SDK's wheel bundles")
    given = parser.parse_args()
    bundled: Path | None = given.bundled.absolute() if given.bundled.is_file() else None
    if bundled is not None:
        alone(bundled)
    found = asyncio.run(measured(bundled))
    print(json.dumps(found) if given.json else "\n".join(told(found, given.bundled)))
    slow = bundled is not None and found["first_request_ms"] > found["bundled_ms"] / 2
    return int(slow or found["ratio"] > MOST or found["errors"] > 0)


if __name__ == "__main__":
    sys.exit(main())
