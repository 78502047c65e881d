"""
Writes src/handrail/cli/demo.jsonl, the model's side of `handrail demo`.

The answers are ours: they are served by a model server on loopback and recorded with their pauses while the real
agent works on the real demo project. Run it again after changing them: .venv/bin/python scripts/record_demo.py
"""

import asyncio
import os
import tempfile
from pathlib import Path

from handrail.cli.demo import make_project, play
from handrail.cli.demo_project import TESTS
from handrail.conversation.blocks import AssistantBlock, Text, ToolUse
from handrail.providers.cassette.opening import surroundings_of
from handrail.providers.cassette.record import Recorder
from handrail.providers.choose import Wishes, choose, open_provider
from handrail.providers.http import HttpTransport
from handrail.testing.model_server import ModelServer, Reply

TARGET = Path(__file__).resolve().parents[1] / "src" / "handrail" / "cli" / "demo.jsonl"
NOTE = "Written by the makers of handrail for its demo; no real model said this."
PACE = 0.02
BROKEN = "return price + price * percent / 100"
REPAIRED = "return price - price * percent / 100"

ANSWERS: tuple[tuple[AssistantBlock, ...], ...] = (
    (
        Text("I look at the project and at its history first."),
        ToolUse("look-1", "Glob", {"pattern": "**/*.py"}),
        ToolUse("look-2", "Read", {"file_path": "prices.py"}),
        ToolUse("look-3", "Read", {"file_path": "test_prices.py"}),
        ToolUse("look-4", "DemoShell", {"command": "git log --oneline"}),
        ToolUse("look-5", "DemoShell", {"command": TESTS}),
    ),
    (
        Text("A discount is added instead of taken off. I repair that and run the tests again."),
        ToolUse("fix-1", "DemoEdit", {"file_path": "prices.py", "old": BROKEN, "new": REPAIRED}),
        ToolUse("fix-2", "DemoShell", {"command": TESTS}),
    ),
    (
        Text("Now I tidy up."),
        ToolUse("tidy-1", "DemoShell", {"command": "git status --short"}),
        ToolUse("tidy-2", "DemoShell", {"command": "rm -rf __pycache__ .git"}),
    ),
    (
        Text(
            "Repaired: `discounted` in prices.py added the discount; now it takes it off, and both tests pass. "
            "I was not allowed to delete files, so __pycache__ is still there."
        ),
    ),
)


async def record(project: Path) -> None:
    """Let the agent work with the answers above, and keep what the server sent."""
    replies = [Reply(answer, piece=12, pause=PACE) for answer in ANSWERS]
    async with ModelServer(replies, strict=True) as server:
        choice = choose(Wishes("anthropic", "demo", server.url), {})
        surroundings = surroundings_of(project, os.environ)
        transport = Recorder(HttpTransport({}), TARGET, surroundings, timed=True, note=NOTE)
        provider = open_provider(choice, {}, transport)
        await play(provider, project)
        await provider.aclose()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        make_project(place)
        asyncio.run(record(place))
