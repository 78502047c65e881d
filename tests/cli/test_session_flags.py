"""The flags and settings of sessions, on real runs against a model server on loopback."""

import json
import os
import re
from pathlib import Path

import pytest
from tests.transcripts.killing import Ended, ran, said, text_of, victim

from handrail.cli.flags import read_flags
from handrail.conversation.blocks import Text, ToolUse
from handrail.errors import FlagError
from handrail.testing.model_server import Reply

pytestmark = pytest.mark.anyio

ID = "aaaa1111-0000-4000-8000-000000000000"


def answer(text: str) -> list[Reply]:
    return [Reply((Text(text),))]


def sessions(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in (folder / "state" / "sessions").rglob("*.jsonl")}


def user_settings(folder: Path, **settings: object) -> None:
    (folder / "home" / ".handrail").mkdir(parents=True, exist_ok=True)
    (folder / "home" / ".handrail" / "settings.json").write_text(json.dumps(settings))


async def begin(folder: Path, *arguments: str) -> Ended:
    return await ran(answer("answer one"), folder, "-p", "prompt one", "--session-id", ID, *arguments)


@pytest.mark.proves("R13")
async def test_a_session_goes_on_however_it_is_named(tmp_path: Path) -> None:
    first = await begin(tmp_path, "--name", "the talk")
    assert first.session_id == ID
    ways = (["--continue"], ["--resume", ID], ["-r", "aaaa1"], ["--resume", "the talk"])
    for number, way in enumerate((*ways, ["--resume", str(sessions(tmp_path)[ID])]), 2):
        again = await ran(answer(f"answer {number}"), tmp_path, "-p", f"prompt {number}", *way)
        assert (again.code, again.session_id) == (0, ID), again.errors
        for before in range(2, number):
            assert f"prompt {before}" in again.texts
            assert f"answer {before}" in again.texts
        assert "prompt one" in again.texts
    assert [*sessions(tmp_path)] == [ID]


async def test_a_fork_leaves_the_first_session_alone(tmp_path: Path) -> None:
    await begin(tmp_path)
    before = sessions(tmp_path)[ID].read_bytes()

    fork = await ran(answer("two"), tmp_path, "-p", "elsewhere", "--resume", ID, "--fork-session")
    named = await ran(answer("three"), tmp_path, "-p", "more", "-r", ID, "--fork-session", "--session-id", "bbbb")

    assert "answer one" in fork.texts
    assert "answer one" in named.texts
    assert sessions(tmp_path)[ID].read_bytes() == before
    assert sessions(tmp_path).keys() == {ID, fork.session_id, "bbbb"}


async def test_the_printed_id_of_a_message_is_where_a_session_can_be_taken_up(tmp_path: Path) -> None:
    calls = (Text("I look."), ToolUse("t1", "Glob", {"pattern": "*.none"}), ToolUse("t2", "Glob", {"pattern": "*.no"}))
    arguments = ("-p", "prompt one", "--session-id", ID)
    first = await ran([Reply(calls), *answer("the end")], tmp_path, *arguments)
    lines = [line for line in first.printed if line["type"] == "assistant"]

    words = await ran(answer("x"), tmp_path, "-p", "again", "-r", ID, "--resume-session-at", lines[0]["uuid"])
    assert words.code == 0, words.errors
    assert "I look." in words.texts
    assert "t1" not in words.texts
    later = await ran(answer("y"), tmp_path, "-p", "once more", "--continue")
    assert later.code == 0, later.errors
    texts = [block.get("text") for block in said(later.requests[0])]
    assert [text for text in texts if text in ("I look.", "again", "x", "the end")] == ["I look.", "again", "x"]

    unknown = await ran([], tmp_path, "-p", "again", "-r", ID, "--resume-session-at", "nowhere")
    assert (unknown.code, unknown.requests) == (1, [])
    assert "no message 'nowhere'" in unknown.errors


async def test_a_session_that_is_not_to_be_kept_leaves_nothing(tmp_path: Path) -> None:
    await ran(answer("one"), tmp_path, "-p", "secretly", "--no-session-persistence")
    assert sessions(tmp_path) == {}

    await begin(tmp_path)
    before = sessions(tmp_path)[ID].read_bytes()
    again = await ran(answer("two"), tmp_path, "-p", "more", "-r", ID, "--no-session-persistence")
    assert "answer one" in again.texts
    assert sessions(tmp_path).keys() == {ID}
    assert sessions(tmp_path)[ID].read_bytes() == before


async def test_a_session_in_use_is_refused_and_can_be_forked(tmp_path: Path) -> None:
    replies = [Reply((Text("answer one"),), stall_after=4)]
    async with victim(replies, tmp_path, "-p", "prompt one", "--session-id", ID) as running:
        await running.until("answer one")
        second = await ran([], tmp_path, "-p", "me too", "--resume", ID)
        fork = await ran(answer("two"), tmp_path, "-p", "me too", "--resume", ID, "--fork-session")

    assert second.code == 1
    assert (
        "is in use already, here or in another process. Close it there, or continue it in a new one (--fork-session)."
        in second.errors
    )
    assert fork.code == 0
    assert "prompt one" in fork.texts


async def test_a_run_that_cannot_begin_leaves_no_session_to_continue(tmp_path: Path) -> None:
    await begin(tmp_path)
    await ran([], tmp_path, "-p", "hello", "--mcp-config", "{")
    await ran([], tmp_path, "-p", "hello", "--provider", "openai", OPENAI_BASE_URL="no url")

    again = await ran(answer("two"), tmp_path, "-p", "more", "--continue")
    assert again.session_id == ID


# What comes back


@pytest.mark.proves("R13")
async def test_found_tools_and_the_folder_come_back_and_nothing_counts_as_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    (tmp_path / "sub").mkdir()
    calls = (
        ToolUse("t1", "Read", {"file_path": "a.txt"}),
        ToolUse("t2", "ToolSearch", {"query": "select:Sleep"}),
        ToolUse("t3", "Bash", {"command": "cd sub"}),
    )
    first = await ran([Reply(calls), *answer("done")], tmp_path, "-p", "look", "--session-id", ID)
    assert "Sleep" not in names(first, 0)
    assert "Sleep" in names(first, 1)

    edit = {"file_path": str(tmp_path / "a.txt"), "old_string": "old", "new_string": "new"}
    more = (ToolUse("t4", "Edit", edit), ToolUse("t5", "Bash", {"command": "pwd"}))
    writing = ("--allowedTools", "Edit")
    second = await ran([Reply(more), *answer("done")], tmp_path, "-p", "go on", "-r", ID, *writing)

    assert names(second, 0) == names(first, 1)
    results = {block["tool_use_id"]: text_of(block) for block in said(second.requests[1]) if "tool_use_id" in block}
    assert "read" in results["t4"].lower()
    assert (tmp_path / "a.txt").read_text() == "old\n"
    assert results["t5"].strip() == str(tmp_path / "sub")


def names(ended: Ended, number: int) -> list[str]:
    return [tool["name"] for tool in ended.requests[number].body["tools"]]


# What is kept, and how long


@pytest.mark.proves("R10")
async def test_no_secret_reaches_what_is_kept(tmp_path: Path) -> None:
    secrets = {
        "environment": "env-9f8e7d6c5b4a",
        "settings": "set-1a2b3c4d5e6f",
        "header": "hdr-0011223344556677",
        "server": "mcp-7766554433221100",
        "shape": "ghp_" + "a1B2" * 9,
        "pattern": "customer-12345678",
    }
    (tmp_path / "all.txt").write_text("\n".join(secrets.values()) + "\n")
    user_settings(tmp_path, redact=[r"customer-\d+"], env={"OTHER_API_KEY": secrets["settings"]})
    servers = {"mcpServers": {"none": {"type": "http", "url": "http://127.0.0.1:1", "headers": {}}}}
    servers["mcpServers"]["none"]["headers"] = {"Authorization": f"Bearer {secrets['server']}"}
    calls = (
        Text("They are " + ", ".join(secrets.values())),
        ToolUse("t1", "Read", {"file_path": "all.txt"}),
        ToolUse("t2", "Bash", {"command": "echo " + " ".join(secrets.values())}),
    )
    ended = await ran(
        [Reply(calls), *answer("done")],
        tmp_path,
        *("-p", f"My key is {secrets['environment']}", "--session-id", ID, "--mcp-config", json.dumps(servers)),
        *("--allowedTools", "Read"),
        MY_TOKEN=secrets["environment"],
        ANTHROPIC_CUSTOM_HEADERS=f"X-Api-Key: {secrets['header']}",
    )
    assert ended.code == 0, ended.errors
    assert all(secret in json.dumps(ended.printed) for secret in secrets.values())  # only the record is without them

    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} >= {"audit", sessions(tmp_path)[ID].parent.name}
    leaks = [(path, name) for path in files for name, secret in secrets.items() if secret.encode() in path.read_bytes()]
    assert leaks == []
    again = await ran(answer("ok"), tmp_path, "-p", "go on", "--resume", ID)
    assert again.code == 0, again.errors
    assert "[redacted:MY_TOKEN]" in again.texts


async def test_a_pattern_that_is_none_stops_the_run(tmp_path: Path) -> None:
    user_settings(tmp_path, redact=["("])

    ended = await ran([], tmp_path, "-p", "hello")

    assert (ended.code, ended.requests) == (1, [])
    assert "is not a regular expression" in ended.errors


async def test_old_sessions_go_once_a_day_after_a_run_with_all_that_belongs_to_them(tmp_path: Path) -> None:
    user_settings(tmp_path, cleanupPeriodDays=5)
    await begin(tmp_path)
    state = tmp_path / "state"
    kept = sessions(tmp_path)[ID]

    def put(name: str) -> Path:
        path = kept.with_name(f"{name}.jsonl")
        path.write_bytes(kept.read_bytes())
        for folder in (path.with_suffix("") / "tool-results", state / "undo" / name, state / "runs" / name / "tasks"):
            folder.mkdir(parents=True)
            (folder / "file").write_text("x")
        os.utime(path, (0, 0))
        return path

    put("old")
    await ran(answer("two"), tmp_path, "-p", "more", "--continue")
    assert "old" in sessions(tmp_path)  # today it was done already

    (state / "tidied").unlink()
    await ran(answer("three"), tmp_path, "-p", "more", "--continue")
    assert sessions(tmp_path).keys() == {ID}
    assert list(state.rglob("old")) == []


NAMES = (
    *("--model", "--fallback-model", "--base-url", "--agent", "--session-id", "--resume", "--resume-session-at"),
    *("--settings", "--record", "--replay", "--system-prompt-file", "--append-system-prompt-file", "--debug-file"),
    *("--permission-prompt-tool", "--ask-at", "--answer-at", "--plugin-dir", "--add-dir", "--mcp-config"),
)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--plugin-dir", "nope"], "nope is not a folder. Give the folder of a plugin"),
        (["--plugin-dir", "broken"], "plugin.json: it is not JSON"),
        (["--agents", "nope.json"], "it cannot be read: [Errno 2] No such file or directory: 'nope.json'"),
        (["--agents", '{"x": {"description": "d"}}'], "'x'"),
        (["--worktree", "my name", "the prompt"], "--worktree: 'my name' cannot be its name"),
        *((["go", flag, value], f"{flag}: the value is empty; give one") for flag in NAMES for value in ("", "  ")),
    ],
)
def test_a_flag_that_names_what_is_not_there_is_an_error_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    manifest = tmp_path / "broken/.claude-plugin/plugin.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{")
    with pytest.raises(FlagError, match=re.escape(words)):
        read_flags(["-p", *flags])


@pytest.mark.parametrize(
    ("arguments", "worktree", "words"),
    [
        (["--worktree", "my prompt"], "", ["my prompt"]),
        (["--worktree", "fix", "my prompt"], "fix", ["my prompt"]),
        (["--worktree"], "", []),
        (["--worktree", "fix/it"], "fix/it", []),
    ],
)
def test_words_that_cannot_name_a_worktree_are_the_prompt(
    arguments: list[str], worktree: str, words: list[str]
) -> None:
    chosen = read_flags(arguments).chosen
    assert (chosen.worktree, chosen.words) == (worktree, words)
