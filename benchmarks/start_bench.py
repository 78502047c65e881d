"""
What starting and leaving costs.

    python -m benchmarks.start_bench [--json]

`handrail --version` beside a bare interpreter in CPU time; `handrail -p` from its start to the first request that a
model server on loopback gets, beside a floor program with httpx2, in wall time; then the time from the last byte of
output to the end of the process, its memory, and what the first call of a tool takes, which loads what the first
request did without. One start has a user's MCP server that needs a second to answer, and whose tools are known from
the start before. All programs have their bytecode, as installed ones do, in a folder of this benchmark.
"""

import argparse
import asyncio
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from benchmarks.mcp_bench import SERVER

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply

RUNS, STARTS = 25, 9
HANDRAIL = str(Path(sys.executable).with_name("handrail"))
FLOOR = """
import asyncio, sys
import httpx2

async def main():
    body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    async with httpx2.AsyncClient() as client, client.stream("POST", sys.argv[1] + "/v1/messages", json=body) as answer:
        async for line in answer.aiter_lines():
            pass

asyncio.run(main())
"""

BYTECODE = tempfile.TemporaryDirectory(prefix="handrail-bytecode-")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONPYCACHEPREFIX"] = BYTECODE.name
NOWHERE = "/nonexistent/bytecode"
STATE = tempfile.TemporaryDirectory(prefix="handrail-state-")
ENVIRONMENT["HANDRAIL_STATE_DIR"] = STATE.name  # not among the owner's sessions


CONFIG = tempfile.TemporaryDirectory(prefix="handrail-config-")


class Started(NamedTuple):
    """Milliseconds: start to first request (and CPU), its answer to the next request, last output to the end."""

    request: float
    work: float
    calling: float
    leaving: float


def cpu(command: list[str]) -> float:
    """Milliseconds of CPU that a command takes, at the first quartile of several runs."""
    spent: list[float] = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=ENVIRONMENT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(spent)[RUNS // 4] * 1000


async def started(
    replies: list[Reply], thinking: float, *command: str, bytecode: bool = True, config: str = ""
) -> Started:
    """A program against a model that thinks for some seconds before its first answer."""
    other = {} if bytecode else {"PYTHONPYCACHEPREFIX": NOWHERE, "PYTHONDONTWRITEBYTECODE": "1"}
    other |= {"HANDRAIL_CONFIG_DIR": config} if config else {}
    thought = asyncio.Event()
    replies[0] = replace(replies[0], gates={0: thought})
    async with ModelServer(replies) as server:
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(word.replace("URL", server.url) for word in command),
            env={**ENVIRONMENT, "ANTHROPIC_BASE_URL": server.url, **other},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        asked = await request_time(server, process, 1)
        work = _cpu_so_far(process.pid)
        await asyncio.sleep(thinking)
        thought.set()
        answered = time.perf_counter()
        again = await request_time(server, process, len(replies)) if len(replies) > 1 else answered
        assert process.stdout is not None
        await process.stdout.readline()
        spoken = time.perf_counter()
        await process.wait()
        left = time.perf_counter()
        return Started((asked - began) * 1000, work, (again - answered) * 1000, (left - spoken) * 1000)


def _cpu_so_far(process: int) -> float:
    """Milliseconds of CPU of its main thread; on a busy machine they say more than the clock. Linux only."""
    spent = Path(f"/proc/{process}/schedstat")
    return int(spent.read_text().split()[0]) / 1e6 if spent.exists() else math.nan


async def request_time(server: ModelServer, process: asyncio.subprocess.Process, number: int) -> float:
    """When the request of that number is there."""
    while len(server.requests) < number:
        if process.returncode is not None:
            raise SystemExit(f"the program ended with {process.returncode} before it made request {number}")
        await asyncio.sleep(0.001)  # the server keeps requests, it does not announce them
    return time.perf_counter()


def add_server() -> None:
    """Write down a user's server, and let a start that waits for it pin its tools."""
    entry = ("slow", "--", sys.executable, "-S", "-c", SERVER.strip(), "1")
    here = ENVIRONMENT | {"HANDRAIL_CONFIG_DIR": CONFIG.name}
    subprocess.run([HANDRAIL, "mcp", "add", "--scope", "user", *entry], env=here, stdout=subprocess.DEVNULL, check=True)
    subprocess.run([HANDRAIL, "mcp", "lock", "slow"], env=here, stdout=subprocess.DEVNULL, check=True)


async def starts() -> dict[str, float]:
    """Ours and the floor take turns; the figures are those of the first quartile."""
    answer, call = Reply((Text("Hello"),)), Reply((ToolUse("t1", "Read", {"file_path": "README.md"}),))
    ours = (HANDRAIL, "-p", "hi")
    kinds = ("floor", "plain", "server", "leaving", "calling", "calling at once", "floor uncompiled", "uncompiled")
    add_server()
    seen: dict[str, list[Started]] = {kind: [] for kind in kinds}
    for _ in range(STARTS + 1):
        seen["floor"].append(await started([answer], 0, sys.executable, "-c", FLOOR, "URL"))
        seen["plain"].append(await started([answer], 0, *ours))
        seen["server"].append(await started([answer], 0, *ours, config=CONFIG.name))
        seen["leaving"].append(await started([answer], 0.1, *ours))  # the tools are being loaded just then
        seen["calling"].append(await started([call, answer], 0.6, *ours))
        seen["calling at once"].append(await started([call, answer], 0, *ours))
        floor = await started([answer], 0, sys.executable, "-c", FLOOR, "URL", bytecode=False)
        seen["floor uncompiled"].append(floor)
        seen["uncompiled"].append(await started([answer], 0, *ours, bytecode=False))

    def usual(what: str, figure: Callable[[Started], float]) -> float:
        return sorted(map(figure, seen[what][1:]))[STARTS // 4]  # the first one wrote the bytecode

    base, mine = usual("floor", attrgetter("request")), usual("plain", attrgetter("request"))
    return {
        "floor, start to first request (ms)": base,
        "handrail -p, start to first request (ms)": mine,
        "handrail -p / floor": mine / base,
        "handrail -p / floor, in CPU time": usual("plain", attrgetter("work")) / usual("floor", attrgetter("work")),
        "with a known MCP server / without": usual("server", attrgetter("request")) / mine,
        "without bytecode, start to first request (ms)": usual("uncompiled", attrgetter("request")),
        "the same / floor without bytecode": usual("uncompiled", attrgetter("request"))
        / usual("floor uncompiled", attrgetter("request")),
        "last output to end of process (ms)": usual("plain", attrgetter("leaving")),
        "the same while tools are loaded (ms)": usual("leaving", attrgetter("leaving")),
        "first call, model thought for 0.6 s (ms)": usual("calling", attrgetter("calling")),
        "first call, model answers at once (ms)": usual("calling at once", attrgetter("calling")),
        "start to second request, at once (ms)": usual("calling at once", lambda s: s.request + s.calling),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    bare, version = cpu([sys.executable, "-c", "pass"]), cpu([HANDRAIL, "--version"])
    figures = {"bare interpreter (ms)": bare, "handrail --version (ms)": version, "version / bare": version / bare}
    figures |= asyncio.run(starts())
    figures["largest child (MB resident)"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if chosen.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:<46} {value:10.2f}")


if __name__ == "__main__":
    main()
