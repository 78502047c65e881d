"""What keys, words and pastes answer in the questions of a conversation."""

import json
import os
from pathlib import Path

import pytest
from tests.cli.test_run import variables
from tests.interactive import Conversing
from tests.tui.interactive.test_conversation import CHECK, leave, said

from handrail.conversation.blocks import ToolUse
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio


async def test_ctrl_d_leaves_a_question_like_esc(project: Path) -> None:
    async with (
        ModelServer([Reply((CHECK,)), said("never asked for")], strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.") as terminal,
    ):
        await terminal.until_asked()
        terminal.type("hm")
        await terminal.until("  : hm")
        terminal.type("\x01\x04\x04\x04")  # it deletes the two letters, and then leaves the empty text
        await terminal.until("Enter confirms", gone=True)
        terminal.type("\x04")
        await terminal.until("interrupted")
        await leave(terminal)

    assert not (project / "ran").exists()
    assert len(server.requests) == 1


async def test_ctrl_d_in_the_question_for_a_key_exits(project: Path) -> None:
    env = {"HOME": str(project), "PATH": os.environ["PATH"]}
    async with Conversing(project, env) as terminal:
        await terminal.until_asked()
        terminal.type("\x04")
        assert await terminal.code() == 1
    assert "There is no key" in terminal.whole


async def test_a_new_folder_is_trusted_only_after_a_yes(project: Path) -> None:
    (project / ".handrail").mkdir()
    hook = {"hooks": [{"type": "command", "command": "touch hooked"}]}
    (project / ".handrail" / "settings.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": [hook]}}))
    async with (
        ModelServer([said("Hello.")], strict=True) as server,
        Conversing(project, variables(server, project), "Hi there.") as terminal,
    ):
        await terminal.until("Trust this folder?")
        await terminal.until_asked()
        assert "touch hooked" in terminal.shown
        assert not (project / "hooked").exists()
        terminal.type("1")
        await terminal.until("Hello.")
        await leave(terminal)
    assert (project / "hooked").exists()


def trust_records(project: Path) -> list[Path]:
    return list(Path(f"{project}-state", "trust").glob("*"))


@pytest.mark.proves("R9")
@pytest.mark.parametrize(
    "keys",
    ["n\r", "no\r", "NO\r", "\r", "x\r\x7fn\r", "yx\r\x7f\x7f2", "y\x7f\r", "\x1b[A\x1b[200~no\x1b[201~\r"],
    ids=repr,
)
async def test_a_new_folder_is_not_trusted_by_another_answer(project: Path, keys: str) -> None:
    (project / ".handrail").mkdir()
    (project / ".handrail" / "settings.json").write_text('{"permissions": {"allow": ["Bash(ls *)"]}}')
    async with (
        ModelServer([said("Hello.")], strict=True) as server,
        Conversing(project, variables(server, project), "Hi there.") as terminal,
    ):
        await terminal.until("Trust this folder?")
        await terminal.until_asked()
        terminal.type(keys)
        await terminal.until("Hello.")
        await leave(terminal)

    assert trust_records(project) == []


async def test_letters_that_are_no_answer_are_said_and_enter_takes_nothing_for_them(project: Path) -> None:
    (project / ".handrail").mkdir()
    (project / ".handrail" / "settings.json").write_text('{"permissions": {"allow": ["Bash(ls *)"]}}')
    async with (
        ModelServer([said("Hello.")], strict=True) as server,
        Conversing(project, variables(server, project), "Hi there.") as terminal,
    ):
        await terminal.until("Trust this folder?")
        await terminal.until_asked()
        terminal.type("yep\r\r")
        await terminal.until("'yep' is no answer. Type a number from 1 to 3")
        terminal.type("\x7f\x7f")
        await terminal.until("> 1. Trust the folder with this")
        terminal.type("\r")
        await terminal.until("Hello.")
        await leave(terminal)

    assert len(trust_records(project)) == 1


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        pytest.param("\x1b[200~yes, but use make\r\ninstead\x1b[201~\r", "yes, but use make\ninstead", id="pasted"),
        pytest.param("\x1b[200~1\x1b[201~\r", "1", id="a number that is pasted"),
        pytest.param("2nd thoughts: no\r", "2nd thoughts: no", id="begun with a number"),
    ],
)
async def test_words_for_the_model_are_neither_lost_nor_a_yes(project: Path, keys: str, words: str) -> None:
    async with (
        ModelServer([Reply((CHECK,)), said("Told.")], strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.") as terminal,
    ):
        await terminal.until_asked()
        terminal.type(keys)
        await terminal.until("Told.")
        await leave(terminal)

    assert not (project / "ran").exists()
    assert words in server.requests[-1].body["messages"][-1]["content"][0]["content"]


async def test_a_yes_in_the_words_of_a_no_is_no_yes(project: Path) -> None:
    async with (
        ModelServer([Reply((CHECK,)), said("Told.")], strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.") as terminal,
    ):
        await terminal.until_asked()
        terminal.type("5")
        await terminal.until("Enter confirms")
        terminal.type("y\r")
        await terminal.until("Told.")
        await leave(terminal)

    assert not (project / "ran").exists()


@pytest.mark.parametrize(("typed", "runs"), [("y\r", True), ("YES\r", True), ("n\r", False), ("no\r", False)])
async def test_yes_and_no_answer_a_question_about_a_call(project: Path, typed: str, runs: bool) -> None:
    async with (
        ModelServer([Reply((CHECK,)), said("Told.")]) as server,
        Conversing(project, variables(server, project), "Run the checks.") as terminal,
    ):
        await terminal.until_asked()
        terminal.type(typed)
        await terminal.until("Told." if runs else "interrupted")
        await leave(terminal)

    assert (project / "ran").exists() is runs


async def test_a_long_question_of_the_model_is_shown_in_full_on_a_narrow_terminal(project: Path) -> None:
    question = "Which of the databases that are installed on this machine should the new service use?"
    detail = "the one that all the other services of this company have used for years"
    options = [{"label": "Postgres", "description": detail}, {"label": "SQLite", "description": "a file"}]
    asked = {"question": question, "header": "Database", "options": options, "multiSelect": True}
    async with (
        ModelServer([Reply((ToolUse("t1", "AskUserQuestion", {"questions": [asked]}),))]) as server,
        Conversing(project, variables(server, project), "Ask me.", columns=40) as terminal,
    ):
        await terminal.until_asked()
        words = " ".join(terminal.shown.split())
        assert "mode default | claude-sonnet" in words
        assert f"Database: {question}" in words
        assert f"1. [ ] Postgres {detail} 2. [ ] SQLite" in words
        terminal.resize(40, 15)
        await terminal.until("the one that all the other servi...")


async def test_the_models_questions_are_answered_by_choice_and_in_own_words(project: Path) -> None:
    options = [{"label": "red", "description": "like fire"}, {"label": "blue", "description": "like \x1b[2Jice"}]
    questions = [
        {"question": "Which colour?", "header": "Colour", "options": options},
        {"question": "Which walls?", "header": "Walls", "options": options, "multiSelect": True},
    ]
    ask = ToolUse("t1", "AskUserQuestion", {"questions": questions})
    async with (
        ModelServer([Reply((ask,)), said("Painted.")], strict=True) as server,
        Conversing(project, variables(server, project), "Paint it.") as terminal,
    ):
        await terminal.until("Which colour?")
        await terminal.until_asked()
        terminal.type("2")
        await terminal.until("Which walls?")
        await terminal.until_asked()
        terminal.type("12\x1b[A ")  # no key is lost, however fast they come
        await terminal.until("> 1. [ ] red")
        await terminal.until("  2. [x] blue")
        terminal.type("3")
        await terminal.until("Another answer")
        terminal.type("the north one\r")
        await terminal.until("> 4. Done: the north one")
        terminal.type("\r")
        await terminal.until("Painted.")
        await leave(terminal)

    told = server.requests[1].raw.decode()
    assert r"Which colour?\n  blue" in told
    assert r"Which walls?\n  blue, the north one" in told
