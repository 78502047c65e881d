"""A worker in a process of its own: asks its coordinator about commands, and prints what was decided to stderr."""

import asyncio
import sys
import tempfile
from pathlib import Path

from handrail.dispatch.approval.worker import Worker, open_streams
from tests.dispatch.approval.desk import Desk


async def main(commands: list[str]) -> None:
    reader, writer = await open_streams(sys.stdin.buffer, sys.stdout.buffer)
    async with Worker(reader, writer) as worker:
        desk = Desk(Path(tempfile.gettempdir()), handler=worker)
        for command in commands:
            decision = await desk.bash(command)
            said = [getattr(block, "text", "a picture") for block in decision.feedback]
            print(decision.verdict.value, decision.updated_input, decision.reason, said, file=sys.stderr, flush=True)


asyncio.run(main(sys.argv[1:]))
