"""An editor works with handrail: prompts, questions, modes, cancelling, several sessions, earlier ones."""

import asyncio
import json
import logging
import re
import sys
from collections.abc import AsyncIterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp.helpers import resource_block
from acp.schema import McpServerStdio

from acp import RequestError, embedded_text_resource, image_block, resource_link_block, text_block
from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import Reply
from tests.acp.editor import SECONDS, Editor, by_name, is_alive, open_editor

pytestmark = pytest.mark.anyio

FIXED = "def greet():\n    return 'hello'\n"
BROKEN = "def greet():\n    return 'helo'\n"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    async with open_editor(tmp_path_factory.mktemp("home")) as editor:
        yield editor


@pytest.fixture
async def editor(running: Editor, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Editor]:
    with anyio.fail_after(SECONDS):
        yield running.fresh()
    assert [each.message for each in caplog.records if each.levelno >= logging.ERROR] == []  # what fits no schema


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "greet.py").write_text(BROKEN)
    return tmp_path


def script_edit(editor: Editor, project: Path, last: str = "Done.") -> None:
    """The model reads the file, repairs it, and says something."""
    file = str(project / "greet.py")
    change = {"file_path": file, "old_string": "'helo'", "new_string": "'hello'"}
    editor.script.say("I look.", ToolUse("r1", "Read", {"file_path": file}))
    editor.script.say(ToolUse("e1", "Edit", change))
    editor.script.say(last)


def statuses(editor: Editor, session: str, call: str) -> list[str]:
    """The states of a call that the editor has seen, in order."""
    updates = editor.updates(session, "tool_call", "tool_call_update")
    found = [each.status for each in updates if each.tool_call_id == call and each.status]
    return [status for status, _ in groupby(found)]


def asked(editor: Editor) -> list[str]:
    """The titles of the questions."""
    return [str(call.title) for call, _ in editor.person.questions]


# Calls and questions


@pytest.mark.proves("O11")
async def test_an_edit_is_shown_as_a_diff_asked_about_and_made(editor: Editor, project: Path) -> None:
    script_edit(editor, project)

    session = await editor.open(project)
    assert await editor.prompt(session, "Repair the greeting.") == "end_turn"

    assert (project / "greet.py").read_text() == FIXED
    assert editor.text(session) == "I look.Done."
    [(call, options)] = editor.person.questions
    diff = call.content[0] if call.content else None
    assert (call.tool_call_id, call.title, call.kind) == ("e1", "Edit greet.py", "edit")
    assert diff is not None
    assert diff.model_dump(exclude_none=True) == {
        "type": "diff",
        "path": str(project / "greet.py"),
        "old_text": "'helo'\n",
        "new_text": "'hello'\n",
    }
    assert [(each.name, each.kind) for each in options] == [
        ("Yes, this once", "allow_once"),
        ("Yes, and for this session: mode acceptEdits", "allow_always"),
        ("No, and stop here", "reject_once"),
        ("No, and go on without it", "reject_once"),
    ]
    assert statuses(editor, session, "e1") == ["pending", "in_progress", "completed"]
    last = [each for each in editor.updates(session, "tool_call_update") if each.tool_call_id == "e1"][-1]
    assert (last.content[0].old_text, last.content[0].new_text) == (BROKEN, FIXED)
    assert (last.locations[0].path, last.locations[0].line) == (str(project / "greet.py"), 1)


@pytest.mark.parametrize(
    ("before", "old", "new"),
    [
        pytest.param(None, None, "one\ntwo\n", id="a new file"),
        pytest.param("one\n2\n", "one\n2\n", "one\ntwo\n", id="a file that is replaced"),
        pytest.param("one\r\n2\r\n", "one\n2\n", "one\ntwo\n", id="a file with line ends of its own"),
    ],
)
async def test_a_question_about_a_write_shows_what_would_change(
    editor: Editor, project: Path, before: str | None, old: str | None, new: str
) -> None:
    file = project / "list.txt"
    if before is not None:
        file.write_bytes(before.encode())
        editor.script.say(ToolUse("r1", "Read", {"file_path": str(file)}))
    editor.script.say(ToolUse("w1", "Write", {"file_path": str(file), "content": "one\ntwo\n"}))
    editor.script.say("Done.")

    session = await editor.open(project)
    assert await editor.prompt(session, "Write the list.") == "end_turn"

    [(call, _)] = editor.person.questions
    assert call.content
    diff = call.content[0].model_dump()
    assert (diff["type"], diff["path"], diff["old_text"], diff["new_text"]) == ("diff", str(file), old, new)


async def test_a_question_about_a_write_that_is_too_large_to_compare_shows_its_content(
    editor: Editor, project: Path
) -> None:
    editor.script.say(ToolUse("w1", "Write", {"file_path": str(project / "a.txt"), "content": "line\n" * 50_000}))
    editor.script.say("Done.")

    session = await editor.open(project)
    assert await editor.prompt(session, "Write it.") == "end_turn"

    [(call, _)] = editor.person.questions
    assert call.content
    shown = call.content[0].model_dump()
    assert (shown["type"], "line\nline\n" in shown["content"]["text"]) == ("content", True)


async def test_a_no_that_stops_leaves_the_file_and_ends_the_turn(editor: Editor, project: Path) -> None:
    script_edit(editor, project)
    editor.person.choose = by_name("No, and stop here")

    session = await editor.open(project)
    assert await editor.prompt(session, "Repair the greeting.") == "cancelled"

    assert (project / "greet.py").read_text() == BROKEN
    assert statuses(editor, session, "e1")[-1] == "failed"


async def test_a_question_that_the_editor_puts_away_is_a_no(editor: Editor, project: Path) -> None:
    script_edit(editor, project)
    editor.person.choose = lambda _options: None

    session = await editor.open(project)
    assert await editor.prompt(session, "Repair the greeting.") == "cancelled"

    assert (project / "greet.py").read_text() == BROKEN


async def test_after_a_no_that_goes_on_the_model_answers(editor: Editor, project: Path) -> None:
    script_edit(editor, project, "Then not.")
    editor.person.choose = by_name("No, and go on")

    session = await editor.open(project)
    assert await editor.prompt(session, "Repair the greeting.") == "end_turn"

    assert (project / "greet.py").read_text() == BROKEN
    assert editor.text(session) == "I look.Then not."


async def test_always_is_written_as_a_rule_and_not_asked_again(editor: Editor, project: Path) -> None:
    use = {"command": "touch made"}
    editor.script.say(ToolUse("b1", "Bash", use))
    editor.script.say(ToolUse("b2", "Bash", use))
    editor.script.say("Done.")
    editor.person.choose = by_name("Yes, always")

    session = await editor.open(project)
    assert await editor.prompt(session, "Make a file, twice.") == "end_turn"

    assert asked(editor) == ["Bash touch made"]
    rules = json.loads((project / ".handrail" / "settings.local.json").read_text())["permissions"]["allow"]
    assert len(rules) == 1
    assert statuses(editor, session, "b2")[-1] == "completed"


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        pytest.param("no such option", "none of the options", id="an option that was not offered"),
        pytest.param("edit", "none of the options", id="an answer that needs words"),
    ],
)
async def test_an_answer_that_was_not_offered_is_a_no(editor: Editor, project: Path, answer: str, wanted: str) -> None:
    script_edit(editor, project)
    editor.person.choose = lambda _options: answer

    session = await editor.open(project)
    assert await editor.prompt(session, "Repair the greeting.") == "end_turn"

    assert (project / "greet.py").read_text() == BROKEN
    assert wanted in json.dumps(editor.server.requests[-1].body["messages"])


async def test_a_question_of_the_model_is_answered_with_one_of_its_choices(editor: Editor, project: Path) -> None:
    choices = [{"label": "Tea", "description": "hot"}, {"label": "Juice", "description": "cold"}]
    questions = [{"question": "What to drink?", "header": "Drink", "options": choices, "multiSelect": False}]
    editor.script.say(ToolUse("q1", "AskUserQuestion", {"questions": questions}))
    editor.script.say("Juice it is.")
    editor.person.choose = by_name("Juice")

    session = await editor.open(project)
    assert await editor.prompt(session, "Ask me.") == "end_turn"

    assert asked(editor) == ["What to drink?"]
    assert "Juice" in json.dumps(editor.server.requests[-1].body["messages"][-1])


async def test_the_task_list_is_the_plan(editor: Editor, project: Path) -> None:
    editor.script.say(ToolUse("t1", "TaskCreate", {"subject": "Look around", "description": "Everywhere."}))
    editor.script.say(ToolUse("t2", "TaskUpdate", {"taskId": "1", "status": "in_progress"}))
    editor.script.say("Planned.")

    session = await editor.open(project)
    await editor.prompt(session, "Make a plan.")

    plans = [[(step.content, step.status) for step in each.entries] for each in editor.updates(session, "plan")]
    assert plans == [[("Look around", "pending")], [("Look around", "in_progress")]]


@pytest.mark.parametrize("background", [False, True], ids=["waited for", "in the background"])
async def test_a_sub_agent_shows_its_calls_and_asks_in_the_editor(
    editor: Editor, project: Path, background: bool
) -> None:
    task = {"description": "Write a note", "prompt": "Please write it.", "run_in_background": background}
    note = {"file_path": str(project / "note.txt"), "content": "noted"}
    editor.script.replies += [
        Reply((ToolUse("a1", "Agent", task),), to="Delegate it."),
        Reply((ToolUse("w1", "Write", note),), to="Please write it."),
        Reply((Text("Written."),), to="Please write it."),
        Reply((Text("Delegated."),), to="Delegate it."),
        Reply((Text("It is done."),), to="Delegate it."),
    ]

    session = await editor.open(project)
    assert await editor.prompt(session, "Delegate it.") == "end_turn"

    [(call, options)] = editor.person.questions
    assert (call.tool_call_id, call.title) == ("w1", "Write note.txt")
    assert "No, and the agent goes on" in [each.name for each in options]
    assert (project / "note.txt").read_text() == "noted"
    assert statuses(editor, session, "w1")[-1] == statuses(editor, session, "a1")[-1] == "completed"
    shown = [each for each in editor.updates(session, "tool_call_update") if each.tool_call_id == "a1" and each.content]
    assert "```\nWrite note.txt\n```" in [each.content[0].content.text for each in shown]


async def test_tools_of_a_server_that_the_editor_brings_are_used(editor: Editor, project: Path) -> None:
    (project / "tools.json").write_text('[{"name": "echo", "inputSchema": {"type": "object"}}]')
    arguments = [str(Path(__file__).parents[1] / "cli" / "small_server.py"), str(project / "tools.json")]
    server = McpServerStdio(name="small", command=sys.executable, args=arguments, env=[])
    editor.script.say(ToolUse("m1", "mcp__small__echo", {"word": "hello"}))
    editor.script.say("Echoed.")

    session = (await editor.agent.new_session(cwd=str(project), mcp_servers=[server])).session_id
    assert await editor.prompt(session, "Say it again.") == "end_turn"

    assert len(editor.person.questions) == 1
    assert "hello" in json.dumps(editor.server.requests[-1].body["messages"][-1])
    await editor.agent.close_session(session_id=session)


async def test_what_a_model_says_steers_no_terminal_and_long_answers_arrive_whole(
    editor: Editor, project: Path
) -> None:
    steering = "a\x1b]0;title\x07b\x00c\ud800d\u202ee\x9bf\r\ng"
    story = "The end is near. " * 100_000
    editor.script.say(steering, ToolUse("t\x1b1", f"Ba{steering}", {"text": steering}))
    editor.script.say(ToolUse("t2", "TaskCreate", {"subject": f"Go{steering}", "description": "x"}))
    editor.script.say(story)

    session = await editor.open(project)
    assert await editor.prompt(session, "Tell a story.") == "end_turn"

    said = editor.text(session)
    assert said.removesuffix(story) == r"a\x1b]0;title\x07b\x00c" + "\ufffd" + r"d\u202ee\x9bf" + "\ng"
    assert max(len(each.content.text) for each in editor.updates(session, "agent_message_chunk")) <= 16_000
    shown = [each.title for each in editor.updates(session, "tool_call")]
    shown += [step.content for each in editor.updates(session, "plan") for step in each.entries]
    assert [text for text in shown if not text.replace("\n", "").isprintable()] == []
    await editor.agent.close_session(session_id=session)
    editor.person.heard.clear()
    await editor.agent.load_session(session_id=session, cwd=str(project), mcp_servers=[])
    assert editor.text(session) == said


async def test_what_goes_wrong_with_the_model_is_the_error_of_the_prompt(editor: Editor, project: Path) -> None:
    editor.script.replies.append(Reply(status=403, error="no entry"))
    session = await editor.open(project)

    with pytest.raises(RequestError, match="no entry"):
        await editor.prompt(session, "Say hello.")


# Cancelling


@pytest.mark.proves("O12")
async def test_cancelling_ends_an_answer_and_the_session_goes_on(editor: Editor, project: Path) -> None:
    editor.script.replies.append(Reply((Text("A long story, without an end."),), piece=4, stall_after=4))
    session = await editor.open(project)
    working = asyncio.ensure_future(editor.prompt(session, "Tell a story."))
    await editor.server.stalled.wait()

    await editor.agent.cancel(session_id=session)

    assert await working == "cancelled"
    editor.script.say("Fine.")
    assert await editor.prompt(session, "Enough.") == "end_turn"
    assert editor.text(session).endswith("Fine.")


async def test_cancelling_takes_an_open_question_back(editor: Editor, project: Path) -> None:
    script_edit(editor, project)
    editor.person.may_answer.clear()
    session = await editor.open(project)
    working = asyncio.ensure_future(editor.prompt(session, "Repair the greeting."))
    await editor.person.asked.wait()

    await editor.agent.cancel(session_id=session)

    assert await working == "cancelled"
    editor.person.may_answer.set()  # too late
    assert (project / "greet.py").read_text() == BROKEN
    editor.script.replies.clear()
    editor.script.say("Nothing was changed.")
    assert await editor.prompt(session, "What did you do?") == "end_turn"


async def test_a_second_prompt_at_the_same_time_is_an_error(editor: Editor, project: Path) -> None:
    script_edit(editor, project)
    editor.person.may_answer.clear()
    session = await editor.open(project)
    working = asyncio.ensure_future(editor.prompt(session, "Repair the greeting."))
    await editor.person.asked.wait()

    with pytest.raises(RequestError, match="still being worked on"):
        await editor.prompt(session, "And another thing.")

    editor.person.may_answer.set()
    assert await working == "end_turn"


# Sessions


@pytest.mark.proves("O13")
async def test_two_sessions_work_side_by_side(editor: Editor, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    gate = asyncio.Event()
    for folder in folders:
        folder.mkdir()
        write = ToolUse(folder.name, "Write", {"file_path": str(folder / "note.txt"), "content": folder.name})
        editor.script.replies.append(Reply((write,), to=f"for {folder.name}"))
    editor.script.replies.append(Reply((Text("One."),), to="for one", gates={0: gate}))
    editor.script.replies.append(Reply((Text("Two."),), to="for two"))

    sessions = [await editor.open(folder) for folder in folders]
    first = asyncio.ensure_future(editor.prompt(sessions[0], "A note for one."))
    assert await editor.prompt(sessions[1], "A note for two.") == "end_turn"
    assert not first.done()
    gate.set()
    assert await first == "end_turn"

    assert [editor.text(each) for each in sessions] == ["One.", "Two."]
    assert [(folder / "note.txt").read_text() for folder in folders] == ["one", "two"]


async def test_an_earlier_session_is_shown_again_and_goes_on(editor: Editor, project: Path) -> None:
    script_edit(editor, project)
    session = await editor.open(project)
    await editor.prompt(session, "Repair the greeting.")
    await editor.agent.close_session(session_id=session)
    editor.person.heard.clear()

    await editor.agent.load_session(session_id=session, cwd=str(project), mcp_servers=[])

    shown: list[Any] = []
    for each in editor.updates(session):
        match each.session_update:
            case "user_message_chunk" | "agent_message_chunk":
                shown.append(each.content.text)
            case "tool_call":
                shown.append((each.title, each.kind, each.status))
    assert shown == [
        "Repair the greeting.",
        "I look.",
        ("Read greet.py", "read", "completed"),
        ("Edit greet.py", "edit", "completed"),
        "Done.",
    ]
    editor.script.say("It was misspelt.")
    assert await editor.prompt(session, "What was wrong?") == "end_turn"
    assert "Repair the greeting." in json.dumps(editor.server.requests[-1].body["messages"][0])


async def test_sessions_are_listed_resumed_without_a_repetition_and_deleted(editor: Editor, project: Path) -> None:
    editor.script.say("Hello.")
    session = await editor.open(project)
    await editor.prompt(session, "Say hello.")
    await editor.agent.close_session(session_id=session)
    editor.person.heard.clear()

    [listed] = (await editor.agent.list_sessions(cwd=str(project))).sessions
    assert (listed.session_id, listed.cwd, listed.title) == (session, str(project), "Say hello.")

    await editor.agent.resume_session(session_id=session, cwd=str(project), mcp_servers=[])
    assert editor.updates(session, "agent_message_chunk", "user_message_chunk") == []

    await editor.agent._conn.send_request("session/delete", {"sessionId": session})
    assert (await editor.agent.list_sessions(cwd=str(project))).sessions == []
    with pytest.raises(RequestError, match="There is no session"):
        await editor.agent.load_session(session_id=session, cwd=str(project), mcp_servers=[])


async def test_overlapping_loads_of_one_session_leave_one_that_works_and_nothing_else_running(
    editor: Editor, project: Path
) -> None:
    (project / "tools.json").write_text("[]")
    (project / "pids").write_text("")
    small = Path(__file__).parents[1] / "cli" / "small_server.py"
    line = f"echo $$ >> {project}/pids; exec {sys.executable} {small} {project}/tools.json"
    server = McpServerStdio(name="small", command="sh", args=["-c", line], env=[])
    editor.script.say("Hello.")
    session = (await editor.agent.new_session(cwd=str(project), mcp_servers=[server])).session_id
    await editor.prompt(session, "Say hello.")
    editor.person.heard.clear()

    load = partial(editor.agent.load_session, session_id=session, cwd=str(project), mcp_servers=[server])
    await asyncio.gather(load(), load(), load())

    shown = [each.content.text for each in editor.updates(session, "user_message_chunk", "agent_message_chunk")]
    assert shown == ["Say hello.", "Hello."] * 3
    editor.script.say("Still here.")
    assert await editor.prompt(session, "Are you there?") == "end_turn"
    await editor.agent.close_session(session_id=session)
    assert [pid for pid in map(int, (project / "pids").read_text().split()) if is_alive(pid)] == []


async def test_closing_a_session_while_it_is_loaded_leaves_nothing_open(editor: Editor, project: Path) -> None:
    editor.script.say("Hello.")
    session = await editor.open(project)
    await editor.prompt(session, "Say hello.")

    load = partial(editor.agent.load_session, session_id=session, cwd=str(project), mcp_servers=[])
    await asyncio.gather(load(), editor.agent.close_session(session_id=session), return_exceptions=True)

    with pytest.raises(RequestError, match="is not open"):
        await editor.prompt(session, "Are you there?")


# Modes and other choices


@pytest.mark.proves("O14")
async def test_the_mode_is_chosen_in_the_editor(editor: Editor, project: Path) -> None:
    opened = await editor.agent.new_session(cwd=str(project), mcp_servers=[])
    session, modes = opened.session_id, opened.modes
    assert modes is not None
    assert [each.id for each in modes.available_modes] == ["default", "acceptEdits", "plan"]
    script_edit(editor, project)

    await editor.agent.set_session_mode(session_id=session, mode_id="acceptEdits")
    await editor.prompt(session, "Repair the greeting.")

    assert (project / "greet.py").read_text() == FIXED
    assert asked(editor) == []
    assert [each.current_mode_id for each in editor.updates(session, "current_mode_update")] == ["acceptEdits"]


async def test_a_plan_is_read_in_the_editor_and_a_yes_changes_the_mode(editor: Editor, project: Path) -> None:
    session = await editor.open(project)
    await editor.agent.set_session_mode(session_id=session, mode_id="plan")
    editor.script.say("Which file?")
    await editor.prompt(session, "Plan it.")
    file = re.search(rb"/[^ \"\\]+/plan[^ \"\\]*\.md", editor.server.requests[-1].raw)
    assert file is not None
    editor.script.say(ToolUse("p1", "Write", {"file_path": file[0].decode(), "content": "# Repair it"}))
    editor.script.say(ToolUse("p2", "ExitPlanMode", {}))
    editor.script.say("Now I begin.")
    editor.person.choose = by_name("Yes, and go on in mode default")

    assert await editor.prompt(session, "greet.py") == "end_turn"

    [(call, _)] = editor.person.questions
    assert call.kind == "switch_mode"
    assert call.content is not None
    assert call.content[0].model_dump()["content"]["text"] == "# Repair it"
    assert [each.current_mode_id for each in editor.updates(session, "current_mode_update")] == ["plan", "default"]


async def test_permissions_are_not_bypassed_where_the_start_does_not_allow_it(editor: Editor, project: Path) -> None:
    session = await editor.open(project)

    with pytest.raises(RequestError, match="not offered here"):
        await editor.agent.set_session_mode(session_id=session, mode_id="bypassPermissions")
    with pytest.raises(RequestError, match="not offered here"):
        await editor.agent.set_config_option(session_id=session, config_id="mode", value="bypassPermissions")


async def test_model_and_effort_are_options(editor: Editor, project: Path) -> None:
    session = await editor.open(project)

    await editor.agent.set_config_option(session_id=session, config_id="model", value="claude-other")
    answer = await editor.agent.set_config_option(session_id=session, config_id="effort", value="low")
    editor.script.say("Hello.")
    await editor.prompt(session, "Say hello.")

    assert answer is not None
    assert [(each.id, each.current_value) for each in answer.config_options] == [
        ("mode", "default"),
        ("model", "claude-other"),
        ("effort", "low"),
    ]
    assert editor.server.requests[-1].body["model"] == "claude-other"


async def test_a_slash_command_needs_no_model(editor: Editor, project: Path) -> None:
    session = await editor.open(project)

    assert await editor.prompt(session, "/context") == "end_turn"

    assert "tokens" in editor.text(session)
    [commands] = editor.updates(session, "available_commands_update")
    assert "compact" in [each.name for each in commands.available_commands]


# What prompts hold


async def test_links_images_and_embedded_files_reach_the_model(editor: Editor, project: Path) -> None:
    (project / "a b.txt").write_text("written beside\n")
    session = await editor.open(project)
    editor.script.say("I see.")

    await editor.agent.prompt(
        session_id=session,
        prompt=[
            text_block("Look at"),
            resource_link_block("a b.txt", (project / "a b.txt").as_uri()),
            image_block(PIXEL, "image/png"),
            resource_block(embedded_text_resource("file:///unsaved.py", "an @greet.py in ``` a buffer\n")),
        ],
    )

    content = editor.server.requests[-1].body["messages"][0]["content"]
    texts = [each["text"] for each in content if each["type"] == "text"]
    assert any(each["type"] == "image" and each["source"]["data"] == PIXEL for each in content)
    assert any(f"Look at @{project}/a\\ b.txt" in text for text in texts)
    assert any("written beside" in text for text in texts)
    assert any("file:///unsaved.py" in text and "a buffer" in text for text in texts)
    assert not any("helo" in text for text in texts)


async def test_a_link_to_a_file_elsewhere_is_asked_about(editor: Editor, tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside.txt"
    project.mkdir()
    outside.write_text("from elsewhere")
    session = await editor.open(project)
    editor.script.say("I see.")

    await editor.agent.prompt(session_id=session, prompt=[resource_link_block("outside.txt", outside.as_uri())])

    [(call, _)] = editor.person.questions
    assert call.kind == "read"
    assert statuses(editor, session, call.tool_call_id)[-1] == "completed"
    assert "from elsewhere" in json.dumps(editor.server.requests[-1].body["messages"])


# Trust


@pytest.mark.proves("R9")
async def test_what_an_untrusted_folder_allows_does_not_count_and_the_editor_is_told(
    editor: Editor, project: Path
) -> None:
    (project / ".handrail").mkdir()
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}
    settings = {"permissions": {"allow": ["Edit"]}, "hooks": hooks}
    (project / ".handrail" / "settings.json").write_text(json.dumps(settings))
    script_edit(editor, project)
    editor.person.choose = by_name("No, and go on")

    session = await editor.open(project)
    await editor.prompt(session, "Repair the greeting.")

    assert "this folder is not trusted, so 2 of its settings are ignored" in editor.text(session)
    assert asked(editor) == ["Edit greet.py"]
    assert not (project / "ran").exists()
