"""kill -9 at any moment loses nothing that was shown, repeats nothing that was done, and the session goes on."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handrail.conversation.blocks import Text, Thinking, ToolUse
from handrail.testing.model_server import Reply
from handrail.transcripts.log import BrokenLine, read
from tests.transcripts.cutting import Cut
from tests.transcripts.killing import SESSION, Ended, Line, Victim, missing, ran, resumed, said, told, victim

pytestmark = [pytest.mark.anyio, pytest.mark.proves("R13", "R1", "X3")]

FIRST = (
    Thinking("Let me see.", {"type": "thinking", "thinking": "Let me see.", "signature": "signed"}),
    Text("I begin."),
    ToolUse("t1", "Bash", {"command": "echo one >> log && echo wrote one"}),
    ToolUse("t2", "Bash", {"command": "read go < fifo && echo two >> log && echo wrote two"}),
)
# frames: 0 start, 1 to 4 the thought, 5 to 7 the text, 8 to 10 and 11 to 13 the calls, 14 and 15 the end
PARTIAL = "--include-partial-messages"


async def asked(running: Victim, _folder: Path) -> None:
    await running.asked(1)


async def first_words(running: Victim, _folder: Path) -> None:
    await running.until("I begin.")


async def pieces(running: Victim, _folder: Path) -> None:
    await running.until("I be", "content_block_delta")


async def during_the_second(running: Victim, folder: Path) -> None:
    await running.until("wrote one")
    await asyncio.to_thread(os.open, folder / "fifo", os.O_WRONLY)  # it has begun, and waits for a line


WHOLE = Reply(FIRST)
STOPS: dict[str, tuple[Callable[[Victim, Path], Awaitable[None]], list[Reply], dict[str, str], str]] = {
    "before the first byte of an answer": (asked, [Reply(FIRST, stall_after=0)], {}, ""),
    "in the middle of a word": (pieces, [Reply(FIRST, piece=4, stall_after=9)], {}, ""),
    "after the first words": (first_words, [Reply(FIRST, stall_after=8)], {}, ""),
    "while a command runs": (during_the_second, [WHOLE], {"t1": "finished", "t2": "started"}, "one\n"),
}


@pytest.mark.parametrize("moment", STOPS)
async def test_a_run_that_was_killed_goes_on(moment: str, tmp_path: Path) -> None:
    wait, replies, known, log = STOPS[moment]
    os.mkfifo(tmp_path / "fifo")

    async with victim(replies, tmp_path, "-p", "the prompt", "--session-id", SESSION, PARTIAL) as running:
        await wait(running, tmp_path)
        await running.kill()

    request = await resumed(tmp_path)
    assert missing(running.printed, request) == []
    assert any("the prompt" in block.get("text", "") for block in said(request))
    assert told(request) == known
    assert ((tmp_path / "log").read_text() if log else "") == log


async def test_prompts_of_a_long_conversation_are_kept_before_they_are_said_back(tmp_path: Path) -> None:
    replies = [Reply((Text("The first answer."),)), Reply(stall_after=0)]
    service = ("--input-format", "stream-json", "--replay-user-messages", "-p", "--session-id", SESSION)
    async with victim(replies, tmp_path, *service) as running:
        running.prompt("the first prompt")
        await running.until('"type": "result"')
        running.prompt("the second prompt")
        running.prompt("a third that waits")
        await running.until("the second prompt")
        await running.kill()

    request = await resumed(tmp_path)
    assert missing(running.printed, request) == []
    texts = [block.get("text", "") for block in said(request)]
    assert [text for text in ("first prompt", "second prompt", "third") if any(text in each for each in texts)] == [
        "first prompt",
        "second prompt",
    ]


async def test_what_ran_for_an_answer_that_was_given_up_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("here\n")
    read = (Text("I look."), ToolUse("t1", "Read", {"file_path": "a.txt"}), Text("And then " * 50))
    replies = [Reply(read, cut_after=8), Reply(stall_after=0)]
    async with victim(replies, tmp_path, "-p", "look", "--session-id", SESSION) as running:
        await running.asked(2)
        await running.kill()

    request = await resumed(tmp_path)
    assert any("given up" in block.get("text", "") and "t1" in block["text"] for block in said(request))
    assert told(request) == {}


CALLS = (
    Text("I begin."),
    ToolUse("t1", "Bash", {"command": "echo one >> log && echo wrote one"}),
    ToolUse("t2", "Agent", {"description": "Helps", "prompt": "Write two.", "subagent_type": "general-purpose"}),
    ToolUse("t3", "Bash", {"command": "echo three >> log && echo wrote three"}),
)
INNER = (Text("I help."), ToolUse("s1", "Bash", {"command": "echo two >> log && echo wrote two"}))
SCRIPT = (Reply(CALLS), Reply(INNER), Reply((Text("It is written."),)), Reply((Text("All is done."),)))
RECORDS = 40
"""So many are written for it, and a few more when it is closed."""


async def broken_off(folder: Path, cut: Cut | None) -> Ended:
    return await ran(SCRIPT, folder, "-p", "the prompt", "--session-id", SESSION, cut=cut)


async def test_a_run_writes_so_many_records(tmp_path: Path) -> None:
    whole = await broken_off(tmp_path, None)
    written = [
        line for file in (tmp_path / "state" / "sessions").rglob("*.jsonl") for line in file.read_text().splitlines()
    ]

    assert (whole.code, len(written)) == (0, RECORDS)
    assert (tmp_path / "log").read_text().split() == ["one", "two", "three"]


@settings(max_examples=12)
@given(st.builds(Cut, st.integers(1, RECORDS), st.sampled_from([0, 500, 999, 1000]), st.sampled_from(["kill", "full"])))
@example(Cut(RECORDS, 1000, "kill"))
def test_wherever_writing_goes_wrong_nothing_shown_is_lost_and_nothing_is_done_twice(cut: Cut) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(goes_on_after(cut, Path(folder)))


async def goes_on_after(cut: Cut, folder: Path) -> None:
    before = await broken_off(folder, cut)
    assert before.code == -9 if cut.how == "kill" else before.code in (0, 1)
    done = effects(folder)
    if not [*(folder / "state").rglob(f"{SESSION}.jsonl")] or cut.record == 1:
        shown = [line for line in before.printed if line["type"] != "result"]
        assert (shown, done) == ([], [])  # not even its first record could be written
        return

    request = await resumed(folder)

    assert missing(before.printed, request) == []
    assert lost_of_sub_agents(before.printed, folder) == []
    assert effects(folder) == done
    assert done in ([], ["one"], ["one", "two"], ["one", "two", "three"])
    known = told(request)
    for call, effect in (("t1", "one"), ("t2", "two"), ("t3", "three")):
        assert effect not in done or known[call] in ("started", "finished")
        assert effect in done or known.get(call, "never") in ("started", "never") or call == "t2"


def effects(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().split() if log.exists() else []


def lost_of_sub_agents(printed: list[Line], folder: Path) -> list[Line]:
    """What was printed of sub-agents and is not kept with the session."""
    kept = [
        json.dumps(block)
        for file in (folder / "state").rglob("subagents/*.jsonl")
        for line in read(file)
        if not isinstance(line, BrokenLine) and "message" in line
        for block in line["message"]["content"]
    ]
    blocks = [b for line in printed if line.get("parent_tool_use_id") for b in line["message"]["content"]]
    return [block for block in blocks if json.dumps(block) not in kept]
