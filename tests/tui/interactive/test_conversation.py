"""A conversation on a terminal: the real program, a screen emulator, a scripted model on loopback."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest
from tests.cli.test_run import variables
from tests.interactive import Conversing

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

MARKDOWN = (
    "# Plan\n\nFirst **this**, then `that`:\n\n- one\n- two\n\n```python\nprint(1)\n```\n\nDone \x1b]0;owned\x07."
)
CHECK = ToolUse("t1", "Bash", {"command": "./check --all"})
ESC = "\x1b"


def said(text: str) -> Reply:
    return Reply((Text(text),))


async def leave(terminal: Conversing) -> None:
    """Leave the conversation, and look at every frame of it."""
    terminal.type("/exit\r")
    assert await terminal.code() == 0
    assert terminal.has_usual_modes()
    terminal.check_frames()


async def test_a_failure_says_where_it_happened_and_what_to_try_and_a_retry_says_when(project: Path) -> None:
    refused = Reply(status=401, error="invalid x-api-key")
    busy = Reply(status=429, error="slow down", headers={"retry-after": "0"})
    async with (
        ModelServer([busy, said("Now."), refused], strict=True) as server,
        Conversing(project, variables(server, project), "Say hi.", columns=200) as terminal,
    ):
        await terminal.until("Now.")
        terminal.type("and now?\r")
        await terminal.until("invalid x-api-key")
        await leave(terminal)

    assert "slow down (status 429). Trying again in" in terminal.whole
    assert f"invalid x-api-key (status 401; {server.url}" in terminal.whole
    assert "ANTHROPIC_API_KEY" in terminal.whole


@pytest.mark.proves("O10")
async def test_an_answer_is_drawn_as_markdown_and_the_input_line_stays(project: Path) -> None:
    async with (
        ModelServer([Reply((Text(MARKDOWN),), piece=7), said("Again.")], strict=True) as server,
        Conversing(project, variables(server, project), "What next?") as terminal,
    ):
        await terminal.until("Done")
        await terminal.until("mode default")
        terminal.type("and now?\r")
        await terminal.until("Again.")
        await leave(terminal)

    assert "> What next?" in terminal.whole
    assert "print(1)" in terminal.whole
    assert "**" not in terminal.whole
    assert "```" not in terminal.whole
    assert r"\x1b]0;owned\x07" in terminal.whole
    assert terminal.whole.count("First this, then that:") == 1
    assert "handrail --resume" in terminal.whole
    assert "mode default" not in terminal.shown


@pytest.mark.proves("G8", "G38", "O8")
async def test_a_question_shows_the_call_and_takes_only_keys_that_are_typed_after_it(project: Path) -> None:
    held = asyncio.Event()
    async with (
        ModelServer([Reply((CHECK,), gates={0: held}), said("Checked.")], strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.") as terminal,
    ):
        await terminal.until("waiting for the model")
        terminal.type("1")
        held.set()
        await terminal.until("needs your permission")
        await terminal.until_asked()
        assert not (project / "ran").exists()
        shown = terminal.shown
        assert "command: ./check --all" in shown
        assert "risk: " in shown
        assert "why: " in shown
        assert "\n> 1. Yes, this once" in shown
        assert "Yes, always: Bash(./check --all) (in .handrail/settings.local.json)" in " ".join(shown.split())
        terminal.type("1")
        await terminal.until("Checked.")
        assert terminal.shown.splitlines()[-2] == "> 1"  # what was typed before the question is in the input line
        terminal.type("\x7f")
        await leave(terminal)

    assert (project / "ran").exists()
    assert "* Bash ./check --all" in terminal.whole
    assert "3 passed" in terminal.whole


async def test_a_plain_no_ends_the_turn_and_a_no_with_words_goes_on(project: Path) -> None:
    replies = [Reply((CHECK,)), said("As you like."), Reply((CHECK,)), said("never asked for")]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.") as terminal,
    ):
        await terminal.until_asked()
        terminal.type("read them instead")  # words are never a yes
        await terminal.until("  : read them instead")
        terminal.type("\r")
        await terminal.until("As you like.")
        terminal.type("once more\r")
        await terminal.until_asked()
        terminal.type("4")
        await terminal.until("interrupted")
        await leave(terminal)

    assert not (project / "ran").exists()
    assert "read them instead" in server.requests[1].raw.decode()
    assert len(server.requests) == 3


async def test_always_writes_the_rule_as_it_was_edited(project: Path) -> None:
    replies = [Reply((CHECK,)), said("Done.")]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.") as terminal,
    ):
        await terminal.until_asked()
        terminal.type(f"{ESC}[B{ESC}[B")
        await terminal.until("> 3. Yes, always")
        terminal.type("\t")
        await terminal.until(": Bash(./check --all)")
        terminal.type("\x15Bash(./check *)\r")
        await terminal.until("Done.")
        await leave(terminal)

    settings = json.loads((project / ".handrail" / "settings.local.json").read_text())
    assert settings["permissions"]["allow"] == ["Bash(./check *)"]


async def test_the_call_can_be_edited_before_it_runs(project: Path) -> None:
    async with (
        ModelServer([Reply((CHECK,)), said("Done.")], strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.") as terminal,
    ):
        await terminal.until_asked()
        terminal.type("6")
        await terminal.until(": ./check --all")
        terminal.type("\x15echo edited\r")
        await terminal.until("Done.")
        await leave(terminal)

    assert not (project / "ran").exists()
    assert "edited" in server.requests[1].raw.decode()


async def test_what_would_be_written_is_shown_with_everything_that_cannot_be_seen(project: Path) -> None:
    (project / "a.txt").write_text("one\ntwo\ntwo two\n")
    read = ToolUse("t1", "Read", {"file_path": "a.txt"})
    change = {"file_path": "a.txt", "old_string": "two", "new_string": "t\u200bwo", "replace_all": True}
    edit = ToolUse("t2", "Edit", change)
    async with (
        ModelServer([Reply((read,)), Reply((edit,)), said("Changed.")], strict=True) as server,
        Conversing(project, variables(server, project), "Change it.") as terminal,
    ):
        await terminal.until_asked()
        assert "  Edit a.txt [every occurrence]\n    - two\n    + t<U+200B>wo\n" in terminal.shown
        terminal.type("1")
        await terminal.until("Changed.")
        await leave(terminal)
    assert "Edit a.txt: +2 -2 [3 places]" in terminal.whole


@pytest.mark.proves("E34", "O9")
async def test_escape_interrupts_a_command_and_the_conversation_goes_on(project: Path) -> None:
    wait = ToolUse("t1", "Bash", {"command": "echo begun; sleep 600"})
    async with (
        ModelServer([Reply((wait,)), said("Hello again.")], strict=True) as server,
        Conversing(project, variables(server, project), "Please wait.", "--allowedTools", "Bash") as terminal,
    ):
        await terminal.until("Bash echo begun; sleep 600, 1 s")
        terminal.type("are you\r")
        await terminal.until("waits: are you")
        terminal.type(ESC)
        await terminal.until("interrupted")
        await terminal.until("\n> are you\n")  # it is not sent: nothing should run now
        terminal.type(" still there?\r")
        await terminal.until("Hello again.")
        await leave(terminal)


@pytest.mark.proves("E35", "L4", "L5")
async def test_a_message_waits_for_the_turn_and_can_be_edited_or_sent_into_it(project: Path) -> None:
    (project / "a.txt").write_text("a\n")
    wait = ToolUse("t1", "Bash", {"command": "until [ -e go ]; do sleep 0.05; done; echo went"})
    replies = [Reply((wait,)), said("I saw it."), said("And the other.")]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(project, variables(server, project), "Please wait.", "--allowedTools", "Bash") as terminal,
    ):
        await terminal.until("Bash until [ -e go ]")
        terminal.type("first\r")
        await terminal.until("waits: first")
        terminal.type(f"{ESC}[A")
        await terminal.until("waits: first", gone=True)
        terminal.type(" word\r")
        await terminal.until("waits: first word")
        terminal.type("\r")
        await terminal.until("waits: first word", gone=True)
        terminal.type("second\r")
        (project / "go").touch()
        await terminal.until("And the other.")
        await leave(terminal)

    assert "first word" in server.requests[1].raw.decode()
    assert "went" in server.requests[1].raw.decode()  # a command is not stopped by a message
    assert "second" in server.requests[2].raw.decode()


async def test_ctrl_c_twice_leaves_and_the_session_goes_on_later(project: Path) -> None:
    async with (
        ModelServer([said("Once upon a time."), said("The end.")], strict=True) as server,
        Conversing(project, variables(server, project), "Please begin.") as terminal,
    ):
        await terminal.until("Once upon a time.")
        terminal.type("\x03")
        await terminal.until("Ctrl+C again exits")
        terminal.type("\x03")
        assert await terminal.code() == 0
        async with Conversing(project, variables(server, project), "--continue") as later:
            await later.until("Once upon a time.")
            later.type("End.\r")
            await later.until("The end.")
            await leave(later)

    assert "Once upon a time." in server.requests[1].raw.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_leaves_the_terminal_as_it_was_and_says_where_the_session_is(
    project: Path, number: signal.Signals
) -> None:
    async with (
        ModelServer([said("Hello.")], strict=True) as server,
        Conversing(project, variables(server, project), "Hi there.") as terminal,
    ):
        await terminal.until("Hello.")
        terminal.process.send_signal(number)
        assert await terminal.code() == 128 + number
        assert terminal.has_usual_modes()

    assert "handrail --resume" in terminal.whole
    assert terminal.raw.rindex("\x1b[?2004l") > terminal.raw.rindex("\x1b[?2004h")
    assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rindex("\x1b[?25l")


CRASH = """
from handrail.__main__ import program
from handrail.tui.interactive.chat import Chat

def fail(chat, command):
    raise RuntimeError("a mistake of ours")

Chat._run_own = fail
program()
"""


CRASH_IN_DRAWING = """
from handrail.__main__ import program
from handrail.tui.interactive.view import ConversationView

draw = ConversationView.live_lines

def fail(view, width, height):
    if view._waiting and "your shell" in view._waiting[0]:
        raise RuntimeError("a mistake of ours")
    return draw(view, width, height)

ConversationView.live_lines = fail
program()
"""


@pytest.mark.parametrize("crash", [CRASH, CRASH_IN_DRAWING], ids=["in a command", "in drawing"])
async def test_after_a_crash_the_terminal_is_as_it_was_and_the_last_line_says_how_to_go_on(
    project: Path, crash: str
) -> None:
    async with (
        ModelServer([said("Hello.")], strict=True) as server,
        Conversing(project, variables(server, project), columns=140, start=(sys.executable, "-c", crash)) as terminal,
    ):
        await terminal.until("mode default")
        terminal.type("Hi\r")
        await terminal.until("Hello.")
        terminal.type("!sleep 60\r")
        assert await terminal.code() == 1
        await terminal.until("a mistake of ours")
        await terminal.until("handrail --resume")
        assert terminal.has_usual_modes()
        assert terminal.shown.splitlines()[-2] == "handrail: the session is saved. Continue it with:"
        assert terminal.raw.count("\x1b[?2004h") > 0
        assert terminal.raw.rindex("\x1b[?2004l") > terminal.raw.rindex("\x1b[?2004h")


async def test_going_back_brings_back_the_files_and_what_was_said(project: Path) -> None:
    write = ToolUse("t1", "Write", {"file_path": str(project / "new.txt"), "content": "new\n"})
    async with (
        ModelServer([said("Hello."), Reply((write,)), said("Written."), said("Anew.")], strict=True) as server,
        Conversing(project, variables(server, project), "Hi there.", "--permission-mode", "acceptEdits") as terminal,
    ):
        await terminal.until("Hello.")
        terminal.type("Write it.\r")
        await terminal.until("Written.")
        assert (project / "new.txt").exists()
        terminal.type(f"{ESC}{ESC}")
        await terminal.until("Go back to before which message?")
        terminal.type("\r")
        await terminal.until("Bring back what?")
        terminal.type("1")
        await terminal.until("Back to before: Write it.")
        assert not (project / "new.txt").exists()
        terminal.type("Again.\r")
        await terminal.until("Anew.")
        await leave(terminal)

    last = server.requests[3].raw.decode()
    assert "Hi there." in last
    assert "Write it." not in last


async def test_without_a_key_the_person_chooses_and_nothing_is_an_error_page(project: Path) -> None:
    async with ModelServer([said("Hello from here.")], strict=True) as server:
        env = variables(server, project)
        bare = {name: value for name, value in env.items() if not name.startswith(("ANTHROPIC", "OPENAI"))}
        async with Conversing(project, bare, "Hi there.", "--model", "gpt-x") as terminal:
            await terminal.until("handrail needs a model")
            await terminal.until_asked()
            terminal.type("3")
            await terminal.until("Enter confirms")
            terminal.type(f"{server.url}/v1\r")
            await terminal.until("Hello from here.")
            await leave(terminal)


async def test_text_that_cannot_be_a_key_is_not_saved(project: Path) -> None:
    async with ModelServer([], strict=True) as server:
        env = variables(server, project)
        bare = {name: value for name, value in env.items() if not name.startswith(("ANTHROPIC", "OPENAI"))}
        async with Conversing(project, bare, "Hi there.", "--model", "gpt-x") as terminal:
            await terminal.until_asked()
            terminal.type("1")
            await terminal.until("Enter confirms")
            terminal.type("export OPENAI_API_KEY=x\r")
            await terminal.until("That is not a key")
            await terminal.until_asked()
            terminal.type("5")
            await terminal.until("There is no key")

    assert not (Path(env["HOME"]) / ".handrail/settings.json").exists()


async def test_the_server_that_is_used_if_no_address_is_given_is_named_and_asked(project: Path) -> None:
    async with ModelServer([], strict=True) as server:
        env = variables(server, project) | {"HTTP_PROXY": server.url, "NO_PROXY": ""}
        bare = {name: value for name, value in env.items() if not name.startswith(("ANTHROPIC", "OPENAI"))}
        async with Conversing(project, bare, "Hi there.", "--model", "gpt-x", columns=120) as terminal:
            await terminal.until("just Enter for http://127.0.0.1:11434/v1)")
            await terminal.until_asked()
            terminal.type("3")
            await terminal.until("Enter confirms")
            terminal.type("\r")
            await terminal.until("http://127.0.0.1:11434/v1/chat/completions")
            await leave(terminal)


@pytest.mark.needs("git")
async def test_without_a_key_the_demo_is_a_choice(project: Path) -> None:
    async with ModelServer([], strict=True) as server:
        env = variables(server, project)
        bare = {name: value for name, value in env.items() if not name.startswith(("ANTHROPIC", "OPENAI"))}
        async with Conversing(project, bare) as terminal:
            await terminal.until("Watch the demo first")
            await terminal.until_asked()
            terminal.type("4")
            await terminal.until("The rules of the project")
            terminal.process.terminate()
            assert await terminal.code() == 143
            assert terminal.has_usual_modes()


@pytest.mark.proves("O1")
async def test_a_call_is_shown_while_the_model_still_writes_it(project: Path) -> None:
    text = "\x1b[31m" + "word " * 500
    write = ToolUse("t1", "Write", {"file_path": "notes/long.txt", "content": text})
    held = asyncio.Event()
    async with (
        ModelServer([Reply((write,), piece=100, gates={15: held}), said("Written.")], strict=True) as server,
        Conversing(project, variables(server, project), "Write it.", "--permission-mode", "acceptEdits") as terminal,
    ):
        await terminal.until("writing Write notes/long.txt, 1.")
        assert not (project / "notes").exists()
        held.set()
        await terminal.until("Written.")
        await leave(terminal)

    assert (project / "notes" / "long.txt").read_text() == text
