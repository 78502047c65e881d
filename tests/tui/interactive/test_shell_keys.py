"""Keys that involve other programs: suspending, an editor; and a conversation in a real tmux."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.cli.test_run import variables
from tests.interactive import Conversing
from tests.on_terminal import PATIENCE
from tests.tui.interactive.test_conversation import CHECK, leave, said

from handrail.conversation.blocks import Text
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "check").write_text("#!/bin/sh\necho 3 passed\n")
    (folder / "check").chmod(0o755)
    return folder


async def test_ctrl_g_edits_the_message_in_the_editor(project: Path) -> None:
    editor = project / "edit"
    editor.write_text('#!/bin/sh\nprintf " and more" >> "$1"\n')
    editor.chmod(0o755)
    async with (
        ModelServer([said("Read.")], strict=True) as server,
        Conversing(project, {**variables(server, project), "VISUAL": str(editor)}) as terminal,
    ):
        await terminal.until("mode default")
        terminal.type("some words\x07")
        await terminal.until("> some words and more")
        terminal.type("\r")
        await terminal.until("Read.")
        await leave(terminal)

    assert "some words and more" in server.requests[0].raw.decode()


@pytest.mark.needs("bash")
@pytest.mark.parametrize("way", [None, signal.SIGTSTP, signal.SIGSTOP], ids=["Ctrl+Z", "SIGTSTP", "SIGSTOP"])
async def test_the_program_is_suspended_and_the_conversation_comes_back_whole(
    project: Path, way: signal.Signals | None
) -> None:
    async with (
        ModelServer([said("Still here.")], strict=True) as server,
        Conversing(project, variables(server, project), start=("bash", "--norc", "-i")) as terminal,
    ):
        terminal.type(f"{shlex.join([sys.executable, '-m', 'handrail'])}\r")
        await terminal.until("mode default")
        terminal.type("half a word")
        await terminal.until("> half a word")
        if way is None:
            terminal.type("\x1a")
        else:
            shell = terminal.process.pid
            os.kill(int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0]), way)
        await terminal.until("Stopped")
        terminal.type("echo in the $((40 + 2)) shell\r")
        await terminal.until("\nin the 42 shell")
        terminal.type("fg\r")
        await terminal.until("\n> half a word\nmode default")
        terminal.type(" and another\r")
        await terminal.until("Still here.")
        terminal.type("/exit\r")
        await terminal.until("the session is saved")

    assert "half a word and another" in server.requests[0].raw.decode()


class Tmux:
    """A tmux of its own, with one window."""

    def __init__(self, socket: Path) -> None:
        self._socket = str(socket)

    async def run(self, *arguments: str) -> str:
        """What a command of tmux prints."""
        process = await asyncio.create_subprocess_exec(
            "tmux", "-f", os.devnull, "-S", self._socket, *arguments, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
        return out.decode()

    async def until(self, text: str) -> str:
        """Wait until this is in the window or above it; all of that."""
        shown = ""
        try:
            async with asyncio.timeout(PATIENCE):
                while text not in (shown := await self.run("capture-pane", "-p", "-S", "-")):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pytest.fail(f"{text!r} did not come. tmux shows:\n{shown}")
        return shown


@asynccontextmanager
async def tmux(folder: Path, env: dict[str, str], *arguments: str) -> AsyncIterator[Tmux]:
    """A tmux in which a conversation runs."""
    found = Tmux(folder.parent / "tmux")
    given = [f"{name}={value}" for name, value in env.items() if name not in ("TERM", "COLUMNS")]
    command = shlex.join(["env", *given, sys.executable, "-m", "handrail", *arguments])
    await found.run("new-session", "-d", "-x", "70", "-y", "20", "-c", str(folder), command)
    try:
        yield found
    finally:
        await found.run("kill-server")


@pytest.mark.needs("tmux")
async def test_in_tmux_an_answer_scrolls_back_and_a_question_is_answered(project: Path) -> None:
    text = "\n\n".join(f"Paragraph {number} of the answer." for number in range(30))
    async with (
        ModelServer([Reply((Text(text),), piece=50), Reply((CHECK,)), said("Checked.")], strict=True) as server,
        tmux(project, variables(server, project), "Say much.") as window,
    ):
        await window.until("Paragraph 29 of the answer.")
        await window.run("resize-window", "-x", "50", "-y", "20")
        await window.run("send-keys", "Run the checks.", "Enter")
        await window.until("a number, or arrows and Enter")
        await window.run("send-keys", "1")
        shown = await window.until("Checked.")

    assert all(shown.count(f"Paragraph {number} of the answer.") == 1 for number in range(30))
    assert "3 passed" in shown
    assert shown.count("mode default") == 1
