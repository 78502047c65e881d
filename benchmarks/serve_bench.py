"""
Runs of `handrail serve`: many at once in one process, each with a reader, beside readers that read nothing.

    python -m benchmarks.serve_bench [--runs 200] [--kill] [--json]

Each run makes one call and answers. The model, on loopback, holds every answer back until all runs have asked, so that
all are under way together. Reported: seconds until all are under way, until all have ended, memory of the server with
all of them open, its CPU time for each run, and how long a request for the list takes meanwhile. Clients and model
share one process; the server has its own. With --kill the server is killed (-9) with all of them under way, and another
one takes them up: none may be lost, and each has one result.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from handrail.conversation.blocks import Text, ToolUse
from handrail.serve.guard import token_digest
from handrail.testing.model_server import ModelServer, Reply

TOKEN = "a-token-for-the-benchmark"
STALLED = 20
"""Readers that take nothing."""


def config(folder: Path, runs: int) -> dict[str, Any]:
    (folder / "work").mkdir()
    (folder / "work" / "hello.txt").write_text("hello\n")
    return {
        "folders": {"work": {"path": str(folder / "work"), "policies": ["read"]}},
        "policies": {"read": {"permissionMode": "dontAsk", "questions": False, "settingSources": []}},
        "clients": {"bench": {"tokenSha256": token_digest(TOKEN), "folders": ["work"]}},
        "maxRuns": runs,
    }


async def follow(client: httpx2.AsyncClient, run_id: str) -> dict[str, Any]:
    last: dict[str, Any] = {}
    async with client.stream("GET", f"/v1/runs/{run_id}/events") as stream:
        async for line in stream.aiter_lines():
            last = json.loads(line) if line else last
    return last


async def stall(url: str, run_id: str) -> asyncio.StreamWriter:
    host, port = url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = f"GET /v1/runs/{run_id}/events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    writer.write(head.encode())
    return writer


def resident(pid: int) -> float:
    """Megabytes of memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files(pid: int) -> int:
    """Files and connections that a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def processor_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(runs: int) -> dict[str, float]:
    gate = asyncio.Event()
    read = [Reply((ToolUse(f"c{n}", "Read", {"file_path": "hello.txt"}),), gates={0: gate}) for n in range(runs)]
    replies = [*read, *(Reply((Text("It says hello."),)) for _ in range(runs))]
    with tempfile.TemporaryDirectory(prefix="handrail-serve-") as name:
        folder = Path(name)
        file = folder / "serve.json"
        file.write_text(json.dumps(config(folder, runs)))
        async with ModelServer(replies) as model, server(folder, file, model) as (url, process):
            return await _measure(url, process.pid, model, gate, runs)


@asynccontextmanager
async def server(folder: Path, file: Path, model: ModelServer) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """A server of its own process, and its address."""
    env = {
        **os.environ,
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "key",
        "HANDRAIL_STATE_DIR": str(folder / "state"),
        "HOME": str(folder),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "handrail", "serve", "--config", str(file), "--json"),
        env=env,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    url = json.loads(await process.stdout.readline())["url"]
    draining = asyncio.create_task(process.stdout.read())
    try:
        yield url, process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await draining


async def survive(runs: int) -> dict[str, float]:
    """Kill a server with so many runs under way, and let another one bring them to their end."""
    never = asyncio.Event()
    replies = [Reply((Text("never"),), gates={0: never}) for _ in range(runs)]
    replies += [Reply((Text("Went on."),)) for _ in range(runs)]
    with tempfile.TemporaryDirectory(prefix="handrail-serve-") as name:
        folder = Path(name)
        file = folder / "serve.json"
        file.write_text(json.dumps(config(folder, runs)))
        async with ModelServer(replies) as model:
            async with server(folder, file, model) as (url, process), connect(url) as client:
                ids = await start_all(client, runs)
                while len(model.requests) < runs:  # noqa: ASYNC110  # the model server tells of no request
                    await asyncio.sleep(0.01)
                process.kill()
                await process.wait()
            begin = time.monotonic()
            async with server(folder, file, model) as (url, _), connect(url) as client:
                last = await asyncio.gather(*(follow(client, run_id) for run_id in ids))
                ended = time.monotonic() - begin
                found = [(await client.get(f"/v1/runs/{run_id}")).json() for run_id in ids]
    whole = [run["status"] == "finished" and run["restarts"] == 1 for run in found]
    results = [line.get("result") == "Went on." for line in last]
    return {
        "runs at work when the server was killed": runs,
        "runs that the next server finished": sum(map(min, whole, results)),
        "seconds from its start to the last result": ended,
    }


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    headers, limits = {"Authorization": f"Bearer {TOKEN}"}, httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=300, limits=limits) as client:
        yield client


async def start_all(client: httpx2.AsyncClient, runs: int) -> list[str]:
    wanted = {"folder": "work", "prompt": "What does hello.txt say?"}
    made = await asyncio.gather(*(client.post("/v1/runs", json=wanted) for _ in range(runs)))
    return [answer.json()["id"] for answer in made]


async def _measure(url: str, pid: int, model: ModelServer, gate: asyncio.Event, runs: int) -> dict[str, float]:
    async with connect(url) as client:
        empty, spent = resident(pid), processor_seconds(pid)
        begin = time.monotonic()
        ids = await start_all(client, runs)
        stalled = [await stall(url, run_id) for run_id in ids[:STALLED]]
        following = [asyncio.create_task(follow(client, run_id)) for run_id in ids]
        while len(model.requests) < runs:  # noqa: ASYNC110  # the model server tells of no request
            await asyncio.sleep(0.01)
        open_after, full = time.monotonic() - begin, resident(pid)
        files = open_files(pid)
        asked = time.monotonic()
        listed = (await client.get("/v1/runs", params={"status": "running", "limit": 200})).json()["runs"]
        list_seconds = time.monotonic() - asked
        assert len(listed) == min(runs, 200), len(listed)
        opened = time.monotonic()
        gate.set()
        last = await asyncio.gather(*following)
        ended_after, spent = time.monotonic() - opened, processor_seconds(pid) - spent
        for writer in stalled:
            writer.close()
    assert all(line["result"] == "It says hello." for line in last)
    return {
        "runs": runs,
        "seconds until all are under way": open_after,
        "seconds from there to the last result": ended_after,
        "CPU milliseconds of the server per run": spent / runs * 1000,
        "megabytes of an idle server": empty,
        "megabytes per run": (full - empty) / runs,
        "open files per run": files / runs,
        "milliseconds of the list with all under way": list_seconds * 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found = asyncio.run((survive if chosen.kill else measure)(chosen.runs))
    if chosen.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:45} {value:10.2f}")


if __name__ == "__main__":
    main()
