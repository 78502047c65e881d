"""
An agent as users of pydantic-ai write one: five tools, and text that is printed while it comes.

    python benchmarks/peer_agent.py PROMPT
"""

import asyncio
import sys
from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

MODEL, INSTRUCTIONS = "anthropic:claude-sonnet-4-5", "You are a coding agent. Use the tools to help the user."


def read(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text("utf-8")


def write(path: str, content: str) -> str:
    """Writes a text file."""
    Path(path).write_text(content, "utf-8")
    return f"Wrote {len(content)} characters to {path}."


async def bash(command: str) -> str:
    """Runs a command with bash, and returns its output and exit code."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return f"{output.decode(errors='replace')[:30_000]}\nexit code {process.returncode}"


def glob(pattern: str) -> list[str]:
    """Finds files by a pattern, newest first, at most 100."""
    found = sorted(Path().glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
    return [str(path) for path in found[:100]]


async def grep(text: str) -> str:
    """Lists the files that hold a text."""
    process = await asyncio.create_subprocess_exec(
        "grep", "-rlF", "--exclude-dir=.git", text, ".", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode(errors="replace")[:30_000]


async def show(_context: Any, events: AsyncIterable[Any]) -> None:
    """Print text while it comes."""
    async for event in events:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                print(text, end="", flush=True)
            case _:
                pass


if __name__ == "__main__":
    agent = Agent(MODEL, instructions=INSTRUCTIONS, tools=[read, write, bash, glob, grep])
    asyncio.run(agent.run(sys.argv[1], event_stream_handler=show))
    print()
