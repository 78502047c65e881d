"""Each example runs as a program of its own, against a model server on loopback that plays its part."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handrail import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.forked import unmeasured

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def said(text: str) -> Reply:
    return Reply((Text(text),))


PLAYED: dict[str, tuple[list[Reply], str]] = {
    "quickstart": (
        [Reply((ToolUse("1", "Glob", {"pattern": "*.py"}),)), said("There is a.py.")],
        "There is a.py.\n",
    ),
    "own_tool": (
        [
            Reply((ToolUse("1", "price", {"fruit": "apple"}), ToolUse("2", "price", {"fruit": "pears"}))),
            Reply((ToolUse("3", "price", {"fruit": "pear"}),)),
            said("One dollar."),
        ],
        "One dollar.\n",
    ),
    "own_rules": (
        [
            Reply(
                (
                    ToolUse("1", "send_mail", {"to": "ann@example.org", "text": "Lunch!"}),
                    ToolUse("2", "send_mail", {"to": "bob@example.com", "text": "Lunch!"}),
                )
            ),
            said("Ann knows."),
        ],
        (
            "Ann knows.\n"
            "refused: send_mail to bob@example.com: 'bob@example.com' is not a colleague\n"
            "sent: ann@example.org: Lunch!\n"
        ),
    ),
    "several_prompts": (
        [said("Hello, Ada."), said("Ada."), said("1 2 3"), said("Goodbye.")],
        "Hello, Ada.\nAda.\n(the second message is taken)\nGoodbye.\n",
    ),
    "events": (
        [Reply((Text("I look."), ToolUse("1", "Glob", {"pattern": "*"}))), Reply((Text("Two files."),), piece=3)],
        "I look.\n> Glob {'pattern': '*'}\n< Glob: ok\nTwo files.\n[completed: 2 turns, 30 tokens, price not known]\n",
    ),
    "interrupt": (
        [Reply((ToolUse("1", "ponder", {"question": "life"}),)), said("42, I guess.")],
        "that takes too long\nended: aborted\n42, I guess.\n",
    ),
    "structured": (
        [said('{"name": "Ada Lovelace"}'), said('{"name": "Ada Lovelace", "born": 1815}')],
        "Ada Lovelace was born in 1815\n",
    ),
    "embedded": (
        [Reply((ToolUse("1", "Glob", {"pattern": "*.py"}),)), said("There is a.py.")],
        "success - There is a.py.\n",
    ),
    "without_async": ([said("Hello."), said("Goodbye.")], "Hello.\nGoodbye.\n"),
}


@contextmanager
def serving(replies: list[Reply]) -> Iterator[str]:
    """A strict model server in a thread of its own."""
    urls: list[str] = []
    stop: list[Callable[[], None]] = []
    up = threading.Event()

    async def serve() -> None:
        async with ModelServer(replies, strict=True) as server:
            done = asyncio.Event()
            urls.append(server.url)
            stop.append(done.set)
            up.set()
            await done.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    up.wait(10)
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(stop[0])
        thread.join(10)
        loop.close()


def test_every_example_is_played() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PLAYED)


@pytest.mark.parametrize("name", PLAYED)
def test_an_example_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    replies, expected = PLAYED[name]
    (tmp_path / "a.py").write_text("a = 1\n")
    with serving(replies) as url:
        environment = {
            **{key: value for key, value in unmeasured().items() if not key.startswith(("ANTHROPIC_", "OPENAI_"))},
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_MODEL": "test-model",
            "HOME": str(tmp_path),
            "PYTHONWARNINGS": "error",
            "PYTHONPATH": str(ROOT / "src"),
        }
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / f"{name}.py")],
            cwd=tmp_path,
            env=environment,
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 0)
