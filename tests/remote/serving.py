"""`handrail serve` as a process, and clients that speak to it over loopback."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from handrail.serve.guard import token_digest
from handrail.testing.model_server import ModelServer
from tests.cli.test_run import variables
from tests.forked import program

TOKENS = {name: f"token-of-{name}-which-is-long-enough" for name in ("ann", "bob", "eve")}
ANN = {"tokenSha256": token_digest(TOKENS["ann"]), "folders": ["shop"], "answers": True}
BOB = {"tokenSha256": token_digest(TOKENS["bob"]), "folders": ["shop", "docs"]}
EVE = {"tokenSha256": token_digest(TOKENS["eve"]), "folders": ["docs"]}


def config_of(folder: Path, **changes: Any) -> dict[str, Any]:
    """Two folders, two policies, three clients: bob may not answer, and eve has nothing to do with the shop."""
    for name in ("shop", "docs"):
        (folder / name).mkdir(exist_ok=True)
    value: dict[str, Any] = {
        "folders": {
            "shop": {"path": str(folder / "shop"), "policies": ["ask", "closed"]},
            "docs": {"path": str(folder / "docs"), "policies": ["closed"]},
        },
        "policies": {
            "ask": {"deny": ["Bash(rm *)"], "settingSources": []},
            "closed": {"permissionMode": "dontAsk", "questions": False, "settingSources": []},
        },
        "clients": {"ann": ANN, "bob": BOB, "eve": EVE},
    }
    return value | changes


def write_config(folder: Path, **changes: Any) -> Path:
    file = folder / "serve.json"
    file.write_text(json.dumps(config_of(folder, **changes)))
    file.chmod(0o600)
    return file


class Served:
    """A server that runs. `lines` are what it printed so far."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url
        self.printed = b""
        self.errors = b""

    @asynccontextmanager
    async def client(self, name: str = "ann") -> AsyncIterator[httpx2.AsyncClient]:
        headers = {"Authorization": f"Bearer {TOKENS[name]}"}
        async with httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60) as client:
            yield client

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.returncode is None:
            self.process.send_signal(number)
        more, errors = await self.process.communicate()
        self.printed, self.errors = self.printed + more, self.errors + errors
        assert self.process.returncode is not None
        return self.process.returncode


@asynccontextmanager
async def served(
    model: ModelServer, folder: Path, config: Path, *arguments: str, anew: bool = False, **more: str
) -> AsyncIterator[Served]:
    """A server of its own process; with `anew` a new interpreter, which can be killed."""
    env: Mapping[str, str] = {**variables(model, folder), "ANTHROPIC_API_KEY": "k", **more}
    process = await asyncio.create_subprocess_exec(
        *((sys.executable, "-m", "handrail") if anew else (program(),)),
        "serve",
        "--config",
        str(config),
        "--json",
        *arguments,
        cwd=folder,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    first = await process.stdout.readline()
    if not first:
        raise AssertionError((await process.communicate())[1].decode())
    server = Served(process, json.loads(first)["url"])
    server.printed = first
    try:
        yield server
    finally:
        await server.end()


async def start(client: httpx2.AsyncClient, prompt: str, **more: Any) -> dict[str, Any]:
    answer = await client.post("/v1/runs", json={"folder": "shop", "prompt": prompt, **more})
    assert answer.status_code == 201, answer.text
    value: dict[str, Any] = answer.json()
    return value


async def get(client: httpx2.AsyncClient, run_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/runs/{run_id}")
    assert answer.status_code == 200, answer.text
    value: dict[str, Any] = answer.json()
    return value


async def lines_of(client: httpx2.AsyncClient, run_id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
    async with client.stream("GET", f"/v1/runs/{run_id}/events", params={"after": after}) as stream:
        assert stream.status_code == 200
        async for line in stream.aiter_lines():
            if line:
                yield json.loads(line)


async def all_lines(client: httpx2.AsyncClient, run_id: str, after: int = 0) -> list[dict[str, Any]]:
    return [line async for line in lines_of(client, run_id, after)]


async def lines_until_gone(client: httpx2.AsyncClient, run_id: str) -> list[dict[str, Any]]:
    """The lines up to the end of the server, which gives answers little time to end and may cut them off."""
    seen: list[dict[str, Any]] = []
    with suppress(httpx2.TransportError):
        async for line in lines_of(client, run_id):
            seen.append(line)  # noqa: PERF401  # those before the cut count
    return seen


async def first_line(client: httpx2.AsyncClient, run_id: str, kind: str) -> dict[str, Any]:
    """The first line of a type, as soon as it is there."""
    async for line in lines_of(client, run_id):
        if line["type"] == kind:
            return line
    raise AssertionError(f"no {kind} among the lines")


def kinds(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    return [line.get("subtype", line["type"]) if line["type"] == "system" else line["type"] for line in lines]
