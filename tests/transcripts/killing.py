"""A real `handrail`, killed and resumed against a strict model server."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handrail.conversation.blocks import Text
from handrail.testing.model_server import ModelServer, Received, Reply
from handrail.transcripts.rebuild import NEVER_STARTED, UNKNOWN
from tests.forked import program
from tests.transcripts.cutting import Cut

SESSION = "killed"
STREAM = ("--output-format", "stream-json", "--verbose")
ALLOWED = ("--allowedTools", "Bash")

Line = dict[str, Any]


def variables(server: ModelServer, folder: Path, **more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "OPENAI_"))}
    where = {"HANDRAIL_STATE_DIR": str(folder / "state"), "HOME": str(folder / "home")}
    return {**own, "ANTHROPIC_BASE_URL": server.url, **where, **more}


@dataclass
class Victim:
    """A running handrail and what it has printed."""

    process: asyncio.subprocess.Process
    server: ModelServer
    printed: list[Line] = field(default_factory=list)

    def give(self, line: Line) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line).encode() + b"\n")

    def prompt(self, text: str) -> None:
        self.give({"type": "user", "message": {"role": "user", "content": text}})

    async def until(self, *wanted: str) -> None:
        """Read until a line was printed that holds each of these texts."""
        assert self.process.stdout is not None
        while not all(any(text in json.dumps(line) for line in self.printed) for text in wanted):
            line = await self.process.stdout.readline()
            assert line, f"it ended before it printed {wanted}: {self.printed} {await self.rest()}"
            self.printed.append(json.loads(line))

    async def asked(self, times: int) -> None:
        """Wait until the model was asked so often."""
        while len(self.server.requests) < times:
            assert self.process.returncode is None, await self.rest()
            await asyncio.sleep(0.005)

    async def kill(self) -> None:
        """Now. What it had printed by then counts, read or not."""
        self.process.send_signal(signal.SIGKILL)
        await self.rest()

    async def rest(self) -> str:
        """To its end; what it says on standard error. A line that was cut off was not printed."""
        out, errors = await self.process.communicate()
        self.printed += [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith(b"\n")]
        return errors.decode()


@asynccontextmanager
async def victim(
    replies: Iterable[Reply], folder: Path, *arguments: str, start: Path | None = None, **more: str
) -> AsyncIterator[Victim]:
    async with asyncio.timeout(60), ModelServer(replies, strict=True) as server:
        process = await asyncio.create_subprocess_exec(
            *(str(start or program()), *STREAM, *ALLOWED, *arguments),
            cwd=folder,
            env=variables(server, folder, **more),
            stdin=asyncio.subprocess.PIPE if "--input-format" in arguments else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        try:
            yield Victim(process, server)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()


@dataclass
class Ended:
    """A run that is over."""

    code: int | None
    printed: list[Line]
    errors: str
    requests: list[Received]

    @property
    def session_id(self) -> str:
        found: str = self.printed[-1]["session_id"]
        return found

    @property
    def texts(self) -> str:
        """All that the first request says."""
        return json.dumps(self.requests[0].body["messages"])


async def ran(replies: Iterable[Reply], folder: Path, *arguments: str, cut: Cut | None = None, **more: str) -> Ended:
    """A run to its end; with `cut`, to where writing its session goes wrong."""
    start = program("tests.transcripts.cutting" if cut else "handrail")
    where = {**more, **(cut.variables() if cut else {})}
    async with victim(replies, folder, *arguments, start=start, **where) as running:
        errors = await running.rest()
        return Ended(running.process.returncode, running.printed, errors, running.server.requests)


async def resumed(folder: Path) -> Received:
    """The first request of the resumed session, which the strict server took."""
    after = await ran([Reply((Text("Here again."),))], folder, "--resume", SESSION, "-p", "go on")
    assert after.code == 0, after
    [request] = after.requests
    return request


def said(request: Received) -> list[Line]:
    """All blocks of the request's messages."""
    found: list[Line] = []
    for message in request.body["messages"]:
        content = message["content"]
        found += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return found


def told(request: Received) -> dict[str, str]:
    """What is known of each call: finished, started or never."""
    known = {}
    for block in said(request):
        if block["type"] == "tool_result":
            text = text_of(block)
            known[block["tool_use_id"]] = {UNKNOWN: "started", NEVER_STARTED: "never"}.get(text, "finished")
    return known


def text_of(result: Line) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def missing(printed: Iterable[Line], request: Received) -> list[Line]:
    """What was printed and is not part of the request."""
    blocks = said(request)
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    results = {block["tool_use_id"]: text_of(block) for block in blocks if block["type"] == "tool_result"}
    calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    thoughts = {block["thinking"] for block in blocks if block["type"] == "thinking"}

    def there(block: Line) -> bool:
        match block["type"]:
            case "text":
                return any(block["text"] in text for text in texts)
            case "thinking":
                return block["thinking"] in thoughts or not calls  # an answer of thoughts alone is no message
            case "tool_use":
                return block["id"] in calls
            case _:
                return results.get(block["tool_use_id"]) == text_of(block)

    return [
        block
        for line in printed
        if line["type"] in ("assistant", "user") and not line["parent_tool_use_id"]
        for block in line["message"]["content"]
        if not there(block)
    ]
