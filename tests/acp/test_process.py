"""The process of `handrail acp`: its end, a kill, and a start without a key."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from acp import RequestError
from handrail.conversation.blocks import ToolUse
from tests.acp.editor import SECONDS, Editor, is_alive, open_editor
from tests.processes.seen import read_pipe

pytestmark = pytest.mark.anyio


@dataclass
class Work:
    """An editor whose agent runs a command that does not end: its prompt, and the process of the command."""

    editor: Editor
    session: str
    command: int
    prompt: "asyncio.Future[str]"


@asynccontextmanager
async def at_work(home: Path) -> AsyncIterator[Work]:
    os.mkfifo(home / "told")
    project = home / "project"
    project.mkdir()
    async with open_editor(home, "--allowedTools", "Bash") as editor:
        with anyio.fail_after(SECONDS):
            editor.script.say("I wait.", ToolUse("b1", "Bash", {"command": "sleep 600 & echo $! > ../told; wait"}))
            session = await editor.open(project, additional_directories=[str(home)])
            working = asyncio.ensure_future(editor.prompt(session, "Wait for ever."))
            command = int(await anyio.to_thread.run_sync(read_pipe, home / "told"))
            yield Work(editor, session, command, working)
            await asyncio.gather(working, return_exceptions=True)


def leave(editor: Editor) -> None:
    assert editor.process.stdin is not None
    editor.process.stdin.close()


def terminate(editor: Editor) -> None:
    editor.process.terminate()


@pytest.mark.proves("R8")
@pytest.mark.parametrize(("end", "code"), [(leave, 0), (terminate, 143)], ids=["end of the input", "a signal"])
async def test_its_end_is_that_of_everything(tmp_path: Path, end: Callable[[Editor], None], code: int) -> None:
    async with at_work(tmp_path) as work:
        end(work.editor)

        assert await work.prompt == "cancelled"
        assert await work.editor.process.wait() == code
        assert not is_alive(work.command)


@pytest.mark.proves("R13")
async def test_a_session_of_a_killed_process_goes_on_in_the_next(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        work.editor.process.kill()
        with pytest.raises(ConnectionError):  # nothing of it is left when its output has ended
            await work.prompt
    session = work.session

    async with open_editor(tmp_path) as editor:
        with anyio.fail_after(SECONDS):
            await editor.agent.load_session(session_id=session, cwd=str(tmp_path / "project"), mcp_servers=[])
            editor.script.say("I was killed.")
            stopped = await editor.prompt(session, "What happened?")

    calls = editor.updates(session, "tool_call")
    assert (stopped, [each.status for each in calls]) == ("end_turn", ["failed"])
    assert editor.text(session) == "I wait.I was killed."


async def test_without_a_key_a_session_is_refused_with_the_variables_to_set(tmp_path: Path) -> None:
    async with open_editor(tmp_path, has_model=False) as editor:
        with anyio.fail_after(SECONDS), pytest.raises(RequestError, match="Set ANTHROPIC_API_KEY or OPENAI") as refused:
            await editor.open(tmp_path)

    assert refused.value.code == -32000
