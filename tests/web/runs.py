"""Sessions for pages to show."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

from handrail import Agent, tool
from handrail.testing import ScriptedModel, say, use

Answers: TypeAlias = Sequence[Sequence[Any]]
HOSTILE = (
    "<script>window.hacked = 1; alert(1)</script><img src=x onerror='window.hacked = 2'>"
    "</script></pre><svg onload=alert(3)>${alert(4)}{{7*7}} \x1b[31mred\x1b[0m \x1b]0;title\x07 \u202egnp.exe\u2066"
    " \x00\x08 javascript:alert(5) \"' onmouseover='alert(6)'"
)


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return f"{HOSTILE} {text}"


def keep_run(folder: Path, answers: Answers, prompt: str, **options: Any) -> Path:
    """Work on a prompt in a folder with two files, and return the file of the session."""

    async def work() -> Path:
        chosen: dict[str, Any] = {"session": True, "mode": "acceptEdits", "allow": ["echo"], **options}
        async with Agent(ScriptedModel(answers), [echo], cwd=folder, state_dir=folder / "state", **chosen) as agent:
            await agent.ask(prompt)
            assert agent.session.transcript is not None
            return agent.session.transcript.path

    folder.mkdir(exist_ok=True)
    if not (folder / "a.txt").exists():
        (folder / "a.txt").write_text("one\ntwo\n")
        (folder / "b.bin").write_bytes(b"\0\1\2" * 100)
    with ThreadPoolExecutor(1) as apart:  # a browser may run in this thread
        return apart.submit(asyncio.run, work()).result(60)


def hostile_run(folder: Path) -> Path:
    """A session with hostile text in every field that the page shows."""
    answers: Answers = [
        [
            say(HOSTILE),
            use("r", "Read", file_path="a.txt"),
            use("c1", "echo", text=HOSTILE),
            use("c2", "Bash", command=f"touch x # {HOSTILE}"),
            use(HOSTILE, HOSTILE, **{HOSTILE: HOSTILE}),
        ],
        [
            use("e", "Edit", file_path="a.txt", old_string="two", new_string=HOSTILE),
            use("w", "Write", file_path="<img src=x onerror=alert(7)>.txt", content=HOSTILE),
            use("huge", "echo", text="x" * 200_000),
            use("half", "echo", text="half of a character: \ud800"),
        ],
        [say("The last words.")],
        [say("And more.")],
    ]
    path = keep_run(folder, answers, f"{HOSTILE} the prompt")
    with path.open("a") as file:
        for line in (
            {"type": "system", "subtype": "note", "content": HOSTILE},
            {"type": "handrail", "event": "title", "title": HOSTILE},
            {"type": "user", "isMeta": True, "message": {"role": "user", "content": HOSTILE}},
            {"type": HOSTILE, "event": HOSTILE},
            {
                "type": "user",
                "message": {"role": "user", "content": [{"type": "image", "source": {"media_type": HOSTILE}}]},
            },
            {"type": "handrail", "event": "requested", "turn": 9, "attempt": 1, "why": HOSTILE, "model": HOSTILE},
            {"type": "handrail", "event": "answered", "model": HOSTILE, "usage": {"input": 3}, "dollars": 0.5},
            {"type": "handrail", "event": "ended", "move": HOSTILE, "why": HOSTILE, "problem": HOSTILE, "turns": 1},
        ):
            file.write(json.dumps({**line, "timestamp": "2026-11-17T10:00:00.000Z"}) + "\n")
    return path
