"""The first day of an engineer who records and replays: tapes that survive, and tests of one line."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from handrail import Agent, tool
from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import UserMessage
from handrail.errors import CassetteMissError
from handrail.http.client import HttpClient
from handrail.providers.cassette.opening import open_replayed_provider, open_replayer, session_normalizer
from handrail.providers.cassette.record import Recorder
from handrail.providers.cassette.tape import load
from handrail.providers.choose import ModelOptions, choose, open_provider
from handrail.session.build import open_session
from handrail.session.session import Session
from handrail.session.spec import SessionHost, SessionSpec
from handrail.testing import CallRules, ScriptedModel, call_sync
from handrail.testing.model_server import ModelServer, Reply
from tests.forked import program, unmeasured

LOOK = Reply(
    (
        ToolUse("1", "Glob", {"pattern": "**/*.py"}),
        ToolUse("2", "Grep", {"pattern": "print", "output_mode": "content"}),
        ToolUse("3", "Bash", {"command": "pwd"}),
    )
)
DONE = Reply((Text("There are three."),))


def environment(home: Path, **more: str) -> dict[str, str]:
    own = {name: value for name, value in unmeasured().items() if not name.startswith(("ANTHROPIC_", "OPENAI_"))}
    return {**own, "HOME": str(home), "HANDRAIL_STATE_DIR": str(home / "state"), "COLUMNS": "80", **more}


def handrail(folder: Path, home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), *arguments],
        cwd=folder,
        env=environment(home, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


async def record(replies: Sequence[Reply], folder: Path, tape: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    arguments = ("-p", "How many files are there?", "--record", str(tape), *flags)
    async with ModelServer(replies) as server:
        home = tape.parent / "home"
        return await asyncio.to_thread(handrail, folder, home, *arguments, ANTHROPIC_BASE_URL=server.url)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for age, name in enumerate(("oldest.py", "older.py", "new.py")):
        (folder / name).write_text(f"print({name!r})\n")
        os.utime(folder / name, (1_000_000_000 - age, 1_000_000_000 - age))
    return folder


@pytest.mark.anyio
async def test_a_tape_is_replayed_in_a_copy_with_other_file_times_and_another_system_prompt(
    project: Path, tmp_path: Path
) -> None:
    tape = tmp_path / "run.jsonl"
    recorded = await record([LOOK, DONE], project, tape)
    copy = Path(shutil.copytree(project, tmp_path / "elsewhere" / "copy", copy_function=shutil.copyfile))
    os.utime(copy / "new.py")
    replay = ("-p", "How many files are there?", "--replay", str(tape))

    plain = handrail(copy, tmp_path / "other-home", *replay)
    changed = handrail(copy, tmp_path / "other-home", *replay, "--append-system-prompt", "Be brief.")
    exact = handrail(
        copy, tmp_path / "other-home", *replay, "--append-system-prompt", "Be brief.", "--replay-match=exact"
    )
    other = handrail(copy, tmp_path / "other-home", *replay, "--model", "claude-opus-4-6")

    assert (recorded.returncode, recorded.stdout) == (0, "There are three.\n")
    assert (plain.returncode, plain.stdout, plain.stderr) == (0, "There are three.\n", "")
    assert (changed.returncode, changed.stdout) == (0, "There are three.\n")
    assert "was recorded, this has changed: the system prompt." in changed.stderr
    assert exact.returncode == 1
    assert "with --replay-match conversation" in exact.stderr
    assert other.returncode == 1
    assert "It was recorded with the model 'claude-sonnet-4-6', not 'claude-opus-4-6'" in other.stderr


@pytest.mark.anyio
async def test_a_tape_in_the_folder_that_is_listed_can_be_replayed_and_recorded_again(project: Path) -> None:
    tape, home = project / "run.jsonl", project / "home"
    home.mkdir()
    listing = Reply((ToolUse("1", "Bash", {"command": "ls"}),))
    for _ in range(2):
        await record([listing, DONE], project, tape)

        replay = handrail(project, home, "-p", "How many files are there?", "--replay", str(tape))

        assert (replay.returncode, replay.stdout, replay.stderr) == (0, "There are three.\n", "")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("last", "flags", "problem"),
    [
        pytest.param(Reply(status=400, error="no"), (), "recording 2: status 400", id="the model refuses"),
        pytest.param(DONE, ("--max-turns", "1"), "recording 1: it is the last one", id="a limit is reached"),
    ],
)
async def test_a_failed_run_does_not_replace_a_good_tape(
    project: Path, tmp_path: Path, last: Reply, flags: Sequence[str], problem: str
) -> None:
    tape = tmp_path / "run.jsonl"
    await record([LOOK, DONE], project, tape)
    good = tape.read_bytes()

    failed = await record([LOOK, last], project, tape, *flags)

    assert failed.returncode == 1
    assert tape.read_bytes() == good
    assert "was not replaced" in failed.stderr
    shown = handrail(project, tmp_path, "cassette", "check", str(tape), str(tmp_path / "run.failed.jsonl"))
    assert shown.returncode == 1
    assert shown.stdout == f"{tape}: good (2 recordings)\n"
    assert f"run.failed.jsonl: {problem}" in shown.stderr


@pytest.mark.anyio
async def test_a_tape_can_be_looked_at_and_compared(project: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    await record([LOOK, DONE], project, first)
    await record([LOOK, Reply((Text("There are four."),))], project, second)

    shown = handrail(project, tmp_path, "cassette", "show", str(first))
    whole = json.loads(handrail(project, tmp_path, "cassette", "show", str(first), "2", "--json").stdout)
    compared = handrail(project, tmp_path, "cassette", "diff", str(first), str(second))

    assert f"{first}: 2 recordings of claude-sonnet-4-6" in shown.stdout
    assert 'Glob({"pattern": "**/*.py"})' in shown.stdout
    assert whole["recordings"][0]["answer"] == [{"type": "text", "text": "There are three."}]
    assert compared.returncode == 1
    assert compared.stdout.startswith("recording 2\n")
    assert '- "There are three."\n    + "There are four."' in compared.stdout


@pytest.mark.anyio
async def test_a_provider_brings_the_name_of_its_model_into_request_price_and_window() -> None:
    async with ModelServer([DONE]) as server:
        provider = open_provider(choose(ModelOptions(model="gpt-4.1", base_url=f"{server.url}/v1"), {}), {})
        async with Agent(provider, builtin_tools=False, env={}) as agent:
            answer = await agent.ask("hi")
            window = agent.session.context_usage()["maxTokens"]
        await provider.aclose()

    assert server.requests[0].body["model"] == agent.model == "gpt-4.1"
    assert answer.dollars
    assert window == 1_000_000


@pytest.mark.anyio
async def test_an_agent_on_a_tape_asks_for_the_recorded_model_and_sorts_files_by_name(
    project: Path, tmp_path: Path
) -> None:
    tape, normalizer = tmp_path / "run.jsonl", session_normalizer(project, {})
    async with ModelServer([LOOK, DONE]) as server:
        choice = choose(ModelOptions(model="claude-opus-4-6", base_url=server.url, provider="anthropic"), {})
        recorded = open_provider(choice, {}, Recorder(HttpClient({}), tape, normalizer))
        async with Agent(recorded, cwd=project, env={}) as agent:
            await agent.ask("How many?")
        await recorded.aclose()
    listed = server.requests[1].body["messages"][-1]["content"][0]["content"]
    os.utime(project / "older.py")

    def replayed(model: str = "") -> Agent[None]:
        replayer = open_replayer(tape, normalizer)
        return Agent(open_replayed_provider(replayer, ModelOptions(model=model)), cwd=project, env={})

    async with replayed() as agent:
        answer = await agent.ask("How many?")
    async with replayed("claude-haiku-4-5") as other:
        with pytest.raises(CassetteMissError, match="recorded with the model 'claude-opus-4-6'"):
            await other.ask("How many?")

    assert listed == "new.py\nolder.py\noldest.py"
    assert (agent.model, answer.text) == ("claude-opus-4-6", "There are three.")


def test_an_agent_with_a_session_that_is_never_asked_leaves_no_file(tmp_path: Path) -> None:
    Agent(ScriptedModel([]), session="x", state_dir=tmp_path, env={})

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_call_edit_works_at_once_and_says_that_it_read_the_file(project: Path, tmp_path: Path) -> None:
    change = json.dumps({"file_path": "new.py", "old_string": "print", "new_string": "show"})

    done = handrail(project, tmp_path, "call", "Edit", change, "--permission-mode", "acceptEdits")
    refused = handrail(project, tmp_path, "call", "Edit", change)

    assert (project / "new.py").read_text() == "show('new.py')\n"
    assert (done.returncode, done.stderr) == (0, "handrail: read new.py first: Edit changes only what was read\n")
    assert "+show('new.py')" in done.stdout
    assert refused.returncode == 3
    assert refused.stderr.endswith("handrail: To allow it: add --permission-mode acceptEdits.\n")


def test_a_failed_edit_shows_the_place_in_the_line_and_never_asks_to_read_again(project: Path, tmp_path: Path) -> None:
    (project / "app.js").write_text("const config = load(); const port = Number(config.port) || 8080; start(port);\n")

    def edit(old: str) -> str:
        change = json.dumps({"file_path": "app.js", "old_string": old, "new_string": "x"})
        return handrail(project, tmp_path, "call", "Edit", change, "--permission-mode", "acceptEdits").stderr

    near, far = edit("port = Number(config.prot)"), edit("SELECT name FROM users")

    assert "What differs: line 1: from column 52 the file has 'ort)', old_string 'rot)'." in near
    assert "nothing like it does. The file is as you read it; search others with Grep." in far
    assert "again" not in near + far


def test_a_tool_is_called_under_rules_in_one_line() -> None:
    @tool
    async def greet(name: str) -> str:
        """Greet."""
        return f"Hello, {name}."

    assert call_sync(greet, name="Ada").result.text == "Hello, Ada."
    assert call_sync(greet, CallRules(deny=["greet"]), name="Ada").status.value == "denied"


def test_one_line_of_a_test_edits_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    outcome = call_sync("Edit", CallRules(cwd=tmp_path), file_path="a.txt", old_string="one", new_string="two")

    assert outcome.status.value == "ok"
    assert (tmp_path / "a.txt").read_text() == "two\n"


@pytest.mark.anyio
async def test_a_session_that_changes_its_model_is_one_tape_and_what_a_replay_leaves_is_told(tmp_path: Path) -> None:
    tape, warnings = tmp_path / "run.jsonl", list[str]()
    env = {"HOME": str(tmp_path), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "ANTHROPIC_API_KEY": "k"}
    spec = SessionSpec(cwd=tmp_path, record=tape, model=ModelOptions(provider="anthropic", model="first"))
    host = SessionHost(on_warning=warnings.append)

    async def ask(session: Session, words: str) -> None:
        async with aclosing(session.drive(UserMessage((Text(words),)))) as events:
            async for _ in events:
                pass

    async with ModelServer([DONE, DONE]) as server:
        session = open_session(spec, {**env, "ANTHROPIC_BASE_URL": server.url}, host)
        await ask(session, "How many?")
        await session.set_model("second")
        await ask(session, "And now?")
        await session.aclose()
    assert [each.request.head["model"] for each in load(tape).recordings] == ["first", "second"]

    session = open_session(replace(spec, record=None, replay=tape), env, host)
    await ask(session, "How many?")
    await session.aclose()
    [told] = warnings
    assert told.startswith(f"1 of 2 recorded answers in {tape} were not asked for: this run ended earlier")
