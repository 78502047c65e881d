"""kill -9 at any moment loses nothing that was shown, repeats nothing that was done, and the session goes on."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from handrail.conversation.blocks import Text, Thinking, ToolUse
from handrail.testing.model_server import Reply
from tests.sessions.killing import SESSION, Victim, missing, resumed, said, told, victim

pytestmark = [pytest.mark.anyio, pytest.mark.proves("R13", "R1", "X3")]

FIRST = (
    Thinking("Let me see.", {"type": "thinking", "thinking": "Let me see.", "signature": "signed"}),
    Text("I begin."),
    ToolUse("t1", "Bash", {"command": "echo one >> log && echo wrote one"}),
    ToolUse("t2", "Bash", {"command": "read go < fifo && echo two >> log && echo wrote two"}),
)
# frames: 0 start, 1 to 4 the thought, 5 to 7 the text, 8 to 10 and 11 to 13 the calls, 14 and 15 the end
PARTIAL = "--include-partial-messages"


async def release(folder: Path) -> None:
    """Let the second call go on; this waits until it has begun."""
    file = await asyncio.to_thread(os.open, folder / "fifo", os.O_WRONLY)
    os.write(file, b"go\n")
    os.close(file)


async def asked(running: Victim, _folder: Path) -> None:
    await running.asked(1)


async def first_words(running: Victim, _folder: Path) -> None:
    await running.until("I begin.")


async def pieces(running: Victim, _folder: Path) -> None:
    await running.until("I be", "content_block_delta")


async def both_calls(running: Victim, _folder: Path) -> None:
    await running.until('"id": "t2"')


async def during_the_second(running: Victim, folder: Path) -> None:
    await running.until("wrote one")
    await asyncio.to_thread(os.open, folder / "fifo", os.O_WRONLY)  # it has begun, and waits for a line


async def between_answers(running: Victim, folder: Path) -> None:
    await running.until("wrote one")
    await release(folder)
    await running.until("wrote two")
    await running.asked(2)


async def the_result(running: Victim, folder: Path) -> None:
    await between_answers(running, folder)
    await running.until('"type": "result"')


WHOLE = Reply(FIRST)
STOPS: dict[str, tuple[Callable[[Victim, Path], Awaitable[None]], list[Reply], dict[str, str], str]] = {
    "before the first byte of an answer": (asked, [Reply(FIRST, stall_after=0)], {}, ""),
    "in the middle of a word": (pieces, [Reply(FIRST, piece=4, stall_after=9)], {}, ""),
    "after the first words": (first_words, [Reply(FIRST, stall_after=8)], {}, ""),
    "before all calls": (both_calls, [Reply(FIRST, stall_after=14)], {"t1": "never", "t2": "never"}, ""),
    "while a command runs": (during_the_second, [WHOLE], {"t1": "finished", "t2": "started"}, "one\n"),
    "before the second answer": (
        between_answers,
        [WHOLE, Reply(stall_after=0)],
        {"t1": "finished", "t2": "finished"},
        "one\ntwo\n",
    ),
    "after the result": (
        the_result,
        [WHOLE, Reply((Text("All is done."),))],
        {"t1": "finished", "t2": "finished"},
        "one\ntwo\n",
    ),
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
    ToolUse("t2", "Bash", {"command": "echo two >> log && echo wrote two"}),
)


async def test_a_disk_that_is_full_at_any_record_stops_the_run_before_it_shows_or_does_more(tmp_path: Path) -> None:
    async def run(folder: Path, disk: int) -> Victim:
        folder.mkdir()
        replies = [Reply(CALLS), Reply((Text("All is done."),))]
        arguments = ("-p", "the prompt", "--session-id", SESSION)
        async with victim(replies, folder, *arguments, disk=disk) as running:
            errors = await running.rest()
        assert (running.process.returncode == 0) == (disk == 0), (disk, errors, running.printed)
        assert disk == 0 or "cannot be written" in errors
        return running

    await run(tmp_path / "whole", 0)
    [kept] = (tmp_path / "whole" / "state" / "sessions").rglob("*.jsonl")
    written = kept.read_bytes()
    steps = [written.find(b"I begin."), written.find(b'"began"'), len(written) - 40]

    async def one(disk: int) -> None:
        folder = tmp_path / f"{disk:05}"  # as long as "whole"
        running = await run(folder, disk)
        request = await resumed(folder)
        assert missing(running.printed, request) == []
        log = (folder / "log").read_text().split() if (folder / "log").exists() else []
        known = told(request)
        assert log in ([], ["one"], ["one", "two"])
        for call, effect in (("t1", "one"), ("t2", "two")):
            assert effect not in log or known[call] in ("started", "finished")
            assert effect in log or known.get(call, "never") in ("started", "never")

    for disk in steps:
        await one(disk)
