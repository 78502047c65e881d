"""What wakes an idle conversation on a terminal: a schedule that is due, and the end of work in the background."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.test_run import variables
from tests.interactive import Conversing

from handrail.conversation.blocks import Text, ToolUse
from handrail.schedules import clock
from handrail.schedules.entries import new_entry
from handrail.schedules.store import ScheduleStore
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("way", [(), ("--plain",)], ids=["drawn", "plain"])
async def test_an_idle_conversation_begins_a_turn_when_a_schedule_is_due(tmp_path: Path, way: tuple[str, ...]) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    replies = [Reply((Text(text),)) for text in ("Hello.", "The build is green.", "Bye.")]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(folder, variables(server, folder), *way, "Who is there?") as terminal,
    ):
        await terminal.until("Hello.")
        store = ScheduleStore(Path(f"{folder}-state", "schedules.json"))
        entry = replace(new_entry("", "x", clock.now(), recurring=False), durable=True, folder=os.path.realpath(folder))
        missed = replace(entry, id="missed", prompt="Long ago.", at=1.0)
        due = replace(entry, id="due", prompt="Look at the build.", at=clock.now())
        await store.change(lambda before: ((*before, missed, due), None))
        await terminal.until("The build is green.")
        await terminal.until("Long ago.")
        terminal.type("Go.\r")
        await terminal.until("Bye.")
        terminal.type("/exit\r")
        assert await terminal.code() == 0

    assert "Look at the build." in terminal.whole
    sent = [str(request.body["messages"][-1]) for request in server.requests]
    assert ['<scheduled-prompt id="due"' in each for each in sent] == [False, True, False]
    assert store.read() == ()


@pytest.mark.parametrize("way", [(), ("--plain",)], ids=["drawn", "plain"])
async def test_the_end_of_a_command_in_the_background_begins_a_turn(tmp_path: Path, way: tuple[str, ...]) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    gate = folder / "gate"
    os.mkfifo(gate)
    call = ToolUse("b", "Bash", {"command": "cat gate", "run_in_background": True})
    replies = [Reply((call,)), Reply((Text("It builds."),)), Reply((Text("It is built."),))]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(folder, variables(server, folder), *way, "--allowedTools", "Bash", "--", "Build.") as terminal,
    ):
        await terminal.until("It builds.")
        gate.write_text("done\n")
        await terminal.until("It is built.")
        terminal.type("/exit\r")
        assert await terminal.code() == 0

    assert "<task-notification>" in str(server.requests[2].body["messages"][-1])


@pytest.mark.parametrize("way", [(), ("--plain",)], ids=["drawn", "plain"])
async def test_clear_begins_a_new_session_and_tells_both_ids(tmp_path: Path, way: tuple[str, ...]) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    replies = [Reply((Text(text),)) for text in ("Hello.", "Roses.")]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(folder, variables(server, folder), *way, "--", "Who is there?", columns=160) as terminal,
    ):
        await terminal.until("Hello.")
        terminal.type("/clear\r")
        await terminal.until("A new session begins: ")
        terminal.type("About roses.\r")
        await terminal.until("Roses.")
        terminal.type("/exit\r")
        assert await terminal.code() == 0

    ids = {path.stem for path in Path(f"{folder}-state", "sessions").glob("*/*.jsonl")}
    said = re.findall(r"session begins: ([0-9a-f-]+)|--resume ([0-9a-f-]+)", terminal.whole)
    new, old, left = (first or second for first, second in said)
    assert {new, old} == ids
    assert left == new
    assert "Who is there?" not in str(server.requests[1].body["messages"])
