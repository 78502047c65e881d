"""
Writes src/handrail/cli/demo.jsonl, the model's side of `handrail demo`.

The answers are ours, and so is their pace; nothing is asked and nothing is run, so the same script always writes the
same file. Run it again after changing them: .venv/bin/python scripts/record_demo.py
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from handrail.cli.demo import PROMPT
from handrail.cli.demo_project import TESTS
from handrail.conversation.blocks import AssistantBlock, Text, ToolUse
from handrail.providers.cassette.canonical import Canonical
from handrail.providers.cassette.tape import Chunk, Header, Recording, TapeWriter
from handrail.testing.wire_answers import ScriptedAnswer, anthropic_events

TARGET = Path(__file__).resolve().parents[1] / "src" / "handrail" / "cli" / "demo.jsonl"
NOTE = "Written by the makers of handrail for its demo; no real model said this."
TALKING, CALLING = 0.02, 0.03  # seconds between the pieces of words and of calls
AT_ONCE = {"look-2", "look-4"}  # calls that come together with the one before
BROKEN = "return price + price * percent / 100"
REPAIRED = "return price - price * percent / 100"

ANSWERS: tuple[tuple[AssistantBlock, ...], ...] = (
    (
        Text("I look for the code and its history first, and run the tests."),
        ToolUse("look-1", "Grep", {"pattern": "discounted", "output_mode": "content"}),
        ToolUse("look-2", "Glob", {"pattern": "**/*.py"}),
        ToolUse("look-3", "Read", {"file_path": "prices.py"}),
        ToolUse("look-4", "Read", {"file_path": "test_prices.py"}),
        ToolUse("look-5", "Bash", {"command": "git log --oneline"}),
        ToolUse("look-6", "Bash", {"command": TESTS}),
    ),
    (
        Text("A discount is added instead of taken off. I repair that and run the tests again."),
        ToolUse("fix-1", "Edit", {"file_path": "prices.py", "old_string": BROKEN, "new_string": REPAIRED}),
        ToolUse("fix-2", "Bash", {"command": TESTS}),
    ),
    (
        Text("Now I tidy up."),
        ToolUse("tidy-1", "Bash", {"command": "git status --short"}),
        ToolUse("tidy-2", "Bash", {"command": "rm -rf __pycache__ .git"}),
    ),
    (
        Text(
            "Repaired: prices.py added the discount, now it takes it off, and both tests pass. "
            "A rule of the project forbids `rm -rf`, so __pycache__ is still there."
        ),
    ),
)


def lines() -> Iterator[str]:
    """The cassette. It is played in order, whatever is asked, so all requests are the prompt alone."""
    tape = TapeWriter()
    yield tape.header(Header("anthropic", "http://demo.invalid", "demo", NOTE))
    prompt = {"role": "user", "content": [{"type": "text", "text": PROMPT}]}
    request = Canonical("anthropic", {"model": "demo"}, (prompt,))
    for number, answer in enumerate(ANSWERS, 1):
        said = ScriptedAnswer(answer, "", "demo", input_tokens=10, output_tokens=5, piece=12)
        chunks = tuple(Chunk(event, pause(event, answer)) for event in anthropic_events(said))
        yield tape.recording(Recording(number, request, 200, {"content-type": "text/event-stream"}, chunks))


def pause(event: bytes, answer: tuple[AssistantBlock, ...]) -> float:
    """The seconds before a piece of an answer."""
    index = json.loads(event.partition(b"data: ")[2]).get("index")
    match answer[index] if index is not None else None:
        case Text():
            return TALKING
        case ToolUse(id) if id in AT_ONCE:
            return 0.0
        case _:
            return CALLING


if __name__ == "__main__":
    text = "".join(lines())
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text)
    else:
        TARGET.write_text(text, "utf-8")
