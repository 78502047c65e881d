"""Questions of running sessions, answered in the browser: the first answer counts, once, in the name of a person."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.async_api import Browser, Page

from handrail import Agent
from handrail.conversation.blocks import Text, ToolUse
from handrail.dispatch.approval.question import Question
from handrail.permissions.risk import Level, Risk
from handrail.processes.peers import is_descendant
from handrail.session.live import questions as live_questions
from handrail.session.live.question_json import question_json, read_live_answer
from handrail.testing import ScriptedModel, say, use
from handrail.testing.model_server import ModelServer, Reply
from handrail.tools.permission import Allow, Deny
from tests.forked import program, unmeasured

pytestmark = pytest.mark.anyio
HOSTILE = "<img src=x onerror=alert(1)>\u202e"


def first_call(command: str) -> list[Reply]:
    return [Reply((ToolUse("t1", "Bash", {"command": command}),)), Reply((Text("Done."),))]


def asks(server: ModelServer) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}


@asynccontextmanager
async def started(*arguments: str, state: Path, **env: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program of handrail that runs in a folder of its own."""
    pipe = asyncio.subprocess.PIPE
    values = {**unmeasured(), "HANDRAIL_STATE_DIR": str(state), "HOME": str(state), **env}
    running = await asyncio.create_subprocess_exec(
        str(program()), *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, cwd=state, env=values
    )
    try:
        async with asyncio.timeout(60):
            yield running
    finally:
        if running.returncode is None:
            running.terminate()
        await running.communicate()


@asynccontextmanager
async def pages(chromium: Browser, state: Path, *people: str) -> AsyncIterator[dict[str, Page]]:
    """A page for each person, in a context of its own, open on the list of sessions."""
    flags = [flag for name in people for flag in ("--for", name)]
    async with started("view", "--live", "--json", *flags, state=state) as serving, AsyncExitStack() as contexts:
        assert serving.stdout is not None
        found = json.loads(await serving.stdout.readline())["addresses"]
        opened: dict[str, Page] = {}
        for each in found:
            page = await (await contexts.enter_async_context(await chromium.new_context())).new_page()
            await page.goto(each["url"])
            await page.get_by_role("heading", name="Sessions").wait_for()
            opened[each["person"]] = page
        yield opened


def audit(state: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in (state / "audit").iterdir() for line in file.read_text().splitlines()]


@pytest.mark.needs("chromium")
async def test_the_first_of_two_people_answers_and_the_other_sees_that_it_is_over(
    chromium: Browser, tmp_path: Path
) -> None:
    state = tmp_path
    state.chmod(0o700)
    async with ModelServer(first_call(f"touch made # {HOSTILE}")) as server:
        run = started("-p", "Make it.", "--live", state=state, **asks(server))
        async with pages(chromium, state, "Ada", "Bob") as people, run as running:
            asked = {
                name: page.get_by_role("region", name="Bash needs your permission") for name, page in people.items()
            }
            for each in asked.values():
                await each.wait_for()
            shown = await asked["Ada"].inner_text()
            await asked["Ada"].get_by_role("button", name="Yes, this once").click()
            await asked["Bob"].wait_for(state="detached")
            out, said = await running.communicate()

    [line] = audit(state)
    assert "Traceback" not in said.decode()
    assert "touch made" in shown
    assert "<img src=x onerror=alert(1)>\u2039U+202E\u203a" in shown
    assert (running.returncode, out.decode().strip(), (state / "made").exists()) == (0, "Done.", True)
    assert (line["by"], line["decision"], line["opinions"][-1]["reason"]) == ("person Ada", "allow", "Ada agreed")
    assert list((state / "live").iterdir()) == []


async def test_answers_carry_what_was_shown_and_count_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    async with (
        ModelServer(first_call("touch made")) as server,
        started("-p", "Make it.", "--live", state=tmp_path, **asks(server)) as running,
    ):
        place = await question_socket(tmp_path)
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        reader, writer = await asyncio.open_unix_connection(place)
        question = await first_question(reader)

        async def send(**values: Any) -> str:
            said = {"number": 1, "question": question["id"], "digest": question["digest"], "person": "Ada"}
            writer.write(json.dumps({**said, **values}).encode() + b"\n")
            while "problem" not in (reply := json.loads(await reader.readline())):
                pass
            return str(reply["problem"])

        assert "has changed" in await send(choice="allow", digest="0" * 64)
        assert "not an answer" in await send(choice="whatever")
        assert "not an answer" in await send(choice="form", answers={})
        assert "answered already" in await send(choice="allow", question="another")
        assert await send(choice="deny", text="Use another name.") == ""
        assert "answered already" in await send(choice="allow")
        writer.close()
        await running.communicate()

    [line] = audit(tmp_path)
    assert (line["decision"], line["by"], line["reason"]) == ("deny", "person Ada", "Use another name")
    assert not (tmp_path / "made").exists()


async def first_question(reader: asyncio.StreamReader) -> dict[str, Any]:
    """The first question that comes over a socket."""
    while True:
        for question in json.loads(await reader.readline()).get("questions", ()):
            return dict(question)


async def question_socket(state: Path) -> Path:
    """The socket of a session with --live, as soon as there is one."""
    while True:
        if found := [*(state / "live").glob("*.sock")] if (state / "live").is_dir() else []:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(found[0])) == 0:
                    return found[0]
        await asyncio.sleep(0.01)


async def test_what_the_agent_started_cannot_answer_for_the_person(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    attack = (
        "import glob, os, socket\n"
        "peer = socket.socket(socket.AF_UNIX)\n"
        "peer.connect(glob.glob(os.environ['STATE'] + '/live/*.sock')[0])\n"
        "print('heard', peer.recv(1))\n"
    )
    (tmp_path / "attack.py").write_text(attack)
    command = f"{sys.executable} attack.py"
    replies = [Reply((ToolUse("t1", "Bash", {"command": command}),)), Reply((Text("Done."),))]
    flags = ("-p", "Go.", "--live", "--output-format", "stream-json", "--verbose")
    async with (
        ModelServer(replies) as server,
        started(*flags, state=tmp_path, STATE=str(tmp_path), **asks(server)) as running,
    ):
        reader, writer = await asyncio.open_unix_connection(await question_socket(tmp_path))
        question = await first_question(reader)
        answer = {"number": 1, "question": question["id"], "digest": question["digest"], "choice": "allow"}
        writer.write(json.dumps(answer).encode() + b"\n")
        out, _ = await running.communicate()
        writer.close()

    assert b"heard b''" in out
    assert is_descendant(os.getpid(), os.getppid())
    assert is_descendant(os.getpid(), os.getpid())
    assert is_descendant(2**22 + 1, 1)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert is_descendant(child.pid, os.getpid())
        assert not is_descendant(os.getpid(), child.pid)
        child.communicate(b"\n")


async def test_without_a_page_a_question_is_refused_after_a_while_and_without_the_flag_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_questions, "VISITOR_SECONDS", 0.01)
    tmp_path.chmod(0o700)

    async with Agent(
        ScriptedModel([[use("a", "Bash", command="touch made")], [say("No.")]]),
        cwd=tmp_path,
        state_dir=tmp_path / "state",
        env={**os.environ, "HANDRAIL_LIVE": "1"},
    ) as agent:
        answer = await agent.ask("Make it.")

    assert [denial.unasked for denial in answer.denials] == [True]
    assert list((tmp_path / "state" / "live").iterdir()) == []
    async with (
        ModelServer(first_call("touch made")) as server,
        started("-p", "Make it.", state=tmp_path, **asks(server)) as running,
    ):
        await running.communicate()
    assert not (tmp_path / "live").exists()


QUESTION = Question("t1#1", ToolUse("t1", "Bash", {"command": "touch x"}), "Bash", "why", Risk(Level.LOW))
SHOWN = question_json(QUESTION)["digest"]
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists)


@given(
    st.dictionaries(
        st.sampled_from(["choice", "digest", "text", "person", "answers", "question"]),
        VALUES | st.sampled_from(["allow", "always", "form", "deny", SHOWN, {}]),
    )
)
def test_only_a_clear_yes_to_what_was_shown_allows(said: dict[str, Any]) -> None:
    answer = read_live_answer(QUESTION, said)

    is_yes = said.get("choice") == "allow" and said.get("digest") == SHOWN
    assert isinstance(answer, Allow) == is_yes
    if not is_yes:
        assert isinstance(answer, Deny) == (said.get("choice") == "deny" and said.get("digest") == SHOWN)
