"""What a developer does before and after a run: check the machine, hang up, look at rules anew, take changes back."""

import asyncio
import json
import os
import signal
from pathlib import Path

import anyio
import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.cli.test_run import HELLO, Ran, handrail, started, variables
from tests.processes.seen import read_pipe

pytestmark = pytest.mark.anyio

EDIT = Reply((ToolUse("t2", "Edit", {"file_path": "price.py", "old_string": "a + b", "new_string": "a - b"}),))
READ = Reply((ToolUse("t1", "Read", {"file_path": "price.py"}),))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "price.py").write_text("price = a + b\n")
    return folder


async def command(project: Path, *words: str) -> Ran:
    """A sub-command that asks no model."""
    return (await handrail([], project, *words))[0]


async def run_with(project: Path, env: dict[str, str], *words: str) -> Ran:
    process = await started(project, env, *words)
    out, errors = await asyncio.wait_for(process.communicate(), 60)
    return Ran(process.returncode or 0, out.decode(), errors.decode())


async def test_without_a_model_doctor_has_a_problem_and_with_one_it_can_ask_it(project: Path) -> None:
    async with ModelServer([Reply((Text("pong"),))]) as server:
        with_model = variables(server, project)
        without = {name: value for name, value in with_model.items() if name != "ANTHROPIC_BASE_URL"}

        alone = await run_with(project, without, "doctor")
        asked = await run_with(project, with_model, "doctor", "--ping", "--json")

    assert alone.code == 1
    assert "ANTHROPIC_API_KEY" in alone.out
    assert (asked.code, len(server.requests)) == (0, 1)
    findings = [found for found in json.loads(asked.out)["findings"] if found["name"] == "ping"]
    assert [found["state"] for found in findings] == ["ok"]
    assert "answered 'pong'" in findings[0]["text"]


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
async def test_a_terminal_that_hangs_up_ends_the_run_and_its_command_and_json_has_its_result(
    project: Path, form: str
) -> None:
    os.mkfifo(project / "told")
    wait = ToolUse("t1", "Bash", {"command": "sleep 600 & echo $! > told; wait"})
    flags = ("--output-format", form, "--allowedTools", "Bash")
    async with ModelServer([Reply((wait,))]) as server:
        process = await started(project, variables(server, project), "-p", "Wait.", *flags)
        with anyio.fail_after(60):
            pid = int(await anyio.to_thread.run_sync(read_pipe, project / "told"))
            process.send_signal(signal.SIGHUP)
            out, _ = await process.communicate()

    assert process.returncode == 129
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    if form != "text":
        assert json.loads(out.splitlines()[-1])["type"] == "result"
    assert out.endswith(b"\n") or not out


async def test_new_rules_are_tried_on_what_was_done_before_they_are_written(project: Path) -> None:
    replies = [READ, EDIT, HELLO]
    await handrail(replies, project, "-p", "Repair it.", "--permission-mode", "acceptEdits")
    stricter = json.dumps({"permissions": {"deny": ["Edit(*.py)"]}})

    same = await command(project, "permissions", "simulate", "--sessions", "--mode", "acceptEdits", "--json")
    other = await command(
        project, "permissions", "simulate", "--sessions", "--mode", "acceptEdits", "--settings", stricter, "--json"
    )

    assert json.loads(same.out)["changed"] == []
    [changed] = json.loads(other.out)["changed"]
    assert (changed["tool"], changed["before"], changed["after"]) == ("Edit", "allow", "deny")
    assert "Edit(*.py)" in changed["reason"]


async def test_what_was_changed_is_taken_back_and_brought_back_by_name(project: Path) -> None:
    await handrail([READ, EDIT, HELLO], project, "-p", "Repair it.", "--permission-mode", "acceptEdits")
    assert (project / "price.py").read_text() == "price = a - b\n"

    listed = await command(project, "undo", "--list")
    undone = await command(project, "undo")
    before = (project / "price.py").read_text()
    redone = await command(project, "redo")

    assert "price.py" in listed.out
    assert (undone.code, redone.code) == (0, 0)
    assert before == "price = a + b\n"
    assert (project / "price.py").read_text() == "price = a - b\n"
