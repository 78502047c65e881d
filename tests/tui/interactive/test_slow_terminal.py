"""A terminal that takes nothing for a while: the conversation goes on, and everything is shown in the end."""

import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.cli.test_run import variables
from tests.interactive import Conversing
from tests.tui.interactive.test_conversation import leave, said

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

PARAGRAPHS = 200
TEXT = "\n\n".join(f"Paragraph {number:05} of a long answer." for number in range(PARAGRAPHS))
WRITE = ToolUse("t1", "Write", {"file_path": "done.txt", "content": "done\n"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


async def test_events_are_worked_on_while_the_terminal_takes_nothing_and_nothing_is_lost(project: Path) -> None:
    replies = [said("Hello."), Reply((Text(TEXT), WRITE), piece=5), said("All written.")]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(project, variables(server, project), "Hi there.", "--permission-mode", "acceptEdits") as terminal,
    ):
        await terminal.until("Hello.")
        terminal.pause()
        terminal.type("Say much, then write.\r")
        await terminal.until_exists(project / "done.txt")
        terminal.go_on()
        await terminal.until("All written.")
        await leave(terminal)

    found = Counter(re.findall(r"Paragraph (\d{5})", terminal.whole))
    assert len(found) == PARAGRAPHS
    assert set(found.values()) == {1}


async def test_a_signal_ends_the_program_while_the_terminal_takes_nothing(project: Path) -> None:
    replies = [said("Hello."), Reply((Text(TEXT), WRITE), piece=5), said("All written.")]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(project, variables(server, project), "Hi there.", "--permission-mode", "acceptEdits") as terminal,
    ):
        await terminal.until("Hello.")
        terminal.pause()
        terminal.type("Say much, then write.\r")
        await terminal.until_exists(project / "done.txt")
        terminal.process.send_signal(signal.SIGTERM)
        assert await terminal.code() == 143
        assert terminal.has_usual_modes()
