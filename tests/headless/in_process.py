"""A program that drives handrail inside the test's own process, over lines in memory."""

import asyncio
import importlib
import json
import pkgutil
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from handrail import builtin, dispatch, files, hooks, permissions, shell
from handrail.headless.embed import serve
from handrail.session.spec import SessionSpec
from handrail.session.transcript import TranscriptOptions
from handrail.testing.model_server import ModelServer, Reply

# handrail loads what calls need in a thread, and this interpreter's parser, which pytest uses when it loads a module,
# cannot be used by two threads at once
for package in (builtin, dispatch, hooks, permissions, files, shell):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)

Line = dict[str, Any]
PATIENCE = 20.0


class Peer:
    """Both ends of the lines. `seen` is all that came out."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.seen: list[Line] = []
        self._to_read = 0
        self._news = asyncio.Event()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    # what handrail uses

    async def next(self) -> bytes | None:
        return await self._lines.get()

    async def send(self, line: Mapping[str, Any]) -> None:
        self.seen.append(json.loads(json.dumps(line)))
        self._news.set()

    # what tests use

    def write(self, line: bytes) -> None:
        self._lines.put_nowait(line)

    def say(self, line: Mapping[str, Any]) -> None:
        self.write(json.dumps(line).encode())

    def end(self) -> None:
        self._lines.put_nowait(None)

    def prompt(self, content: Any, **more: Any) -> None:
        self.say({"type": "user", "message": {"role": "user", "content": content}, **more})

    async def until(self, kind: str) -> list[Line]:
        """The lines since the last time, up to one of that type."""
        begin = self._to_read
        while not any(line["type"] == kind for line in self.seen[self._to_read :]):
            self._news.clear()
            await self._news.wait()
        kinds = [line["type"] for line in self.seen[begin:]]
        self._to_read = begin + kinds.index(kind) + 1
        return self.seen[begin : self._to_read]

    async def turn(self, content: Any, **more: Any) -> list[Line]:
        """One prompt to its result."""
        self.prompt(content, **more)
        return await self.until("result")

    async def ask(self, subtype: str, **fields: Any) -> Line:
        """One question to its answer."""
        self.say({"type": "control_request", "request_id": subtype, "request": {"subtype": subtype, **fields}})
        answer: Line = (await self.until("control_response"))[-1]["response"]
        return answer


@asynccontextmanager
async def peer(
    folder: Path, replies: Iterable[Reply] = (), *, session: TranscriptOptions | None = None, **options: Any
) -> AsyncIterator[Peer]:
    """A conversation in the folder `work`, with a home and a state folder beside it."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    with anyio.fail_after(PATIENCE):
        async with ModelServer(replies, strict=True) as server:
            env = {"HOME": str(folder / "home"), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": "/usr/bin:/bin"}
            env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "test-key"}
            end = Peer(server)
            spec = SessionSpec(cwd=work, transcript=session or TranscriptOptions(), **options.pop("spec", {}))
            serving = asyncio.create_task(serve(end, end, spec, env=env, **options))
            try:
                yield end
            finally:
                end.end()
                await serving


def of(lines: Iterable[Line], subtype: str) -> list[Line]:
    """The system lines of a kind."""
    return [line for line in lines if line.get("subtype") == subtype and line["type"] == "system"]
