"""What is typed into a conversation: commands, notes, files, pastes; other sizes, other terminals, line by line."""

import base64
import json
import re
from pathlib import Path

import pytest
from tests.cli.test_run import variables
from tests.forked import reference_server
from tests.interactive import Conversing
from tests.tui.interactive.test_conversation import CHECK, leave, said

from handrail.cli.clipboard import read_clipboard_image
from handrail.conversation.blocks import Text, ToolUse
from handrail.errors import HandrailError
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_files_and_commands_are_completed_and_a_command_of_ones_own_is_told_to_the_model(project: Path) -> None:
    (project / "some_module.py").write_text("a = 1\n")
    async with (
        ModelServer([said("I read it.")], strict=True) as server,
        Conversing(project, variables(server, project)) as terminal,
    ):
        await terminal.until("mode default")
        terminal.type("/perm")
        await terminal.until("Show the rules in effect")
        terminal.type("\t\r")
        await terminal.until("There are no rules.")
        terminal.type("!echo by-hand; printf half; until [ -e go ]; do sleep 0.01; done; echo ' whole'; exit 3\r")
        await terminal.until("\nby-hand")
        assert "exit code" not in terminal.shown
        (project / "go").touch()
        await terminal.until("half whole\nexit code 3")
        terminal.type("!echo first; sleep 600\r")
        await terminal.until("\nfirst")
        terminal.type("\x03")
        await terminal.until("interrupted")
        terminal.type("!head -c 40000 /dev/zero | tr '\\0' x\r")
        await terminal.until("(what it prints from here on is not shown)")
        terminal.type("#use tabs\r")
        await terminal.until("Remember it where?")
        terminal.type("1")
        await terminal.until("Written to")
        terminal.type("Read @mod")
        await terminal.until("  some_module.py")
        terminal.type("\t\r\r")
        await terminal.until("I read it.")
        terminal.type("\x1b[Z")
        await terminal.until("mode acceptEdits")
        terminal.type("/cost\r")
        await terminal.until(" dollars\nscripted: ")
        await leave(terminal)

    asked = server.requests[0].raw.decode()
    assert "a = 1" in asked
    assert r"by-hand\nhalf whole\nexit code 3" in asked
    assert r"first\nIt was stopped by the user." in asked
    assert (project / "AGENTS.md").read_text() == "- use tabs\n"


async def test_a_long_paste_is_folded_and_what_was_sent_can_be_searched_for(project: Path) -> None:
    pasted = "\n".join(f"pasted line {number}" for number in range(300))
    async with (
        ModelServer([said("Long."), said("Found.")], strict=True) as server,
        Conversing(project, variables(server, project)) as terminal,
    ):
        await terminal.until("mode default")
        terminal.type(f"\x1b[200~{pasted}\x1b[201~")
        await terminal.until("[pasted text #1, 300 lines")
        terminal.type(" and ")
        terminal.type("first\rsecond\rthird")  # from a terminal that does not mark what is pasted
        await terminal.until("  third")
        terminal.type("\r")
        await terminal.until("Long.")
        assert "more characters, Ctrl+O shows them" in terminal.whole
        terminal.type("a word to remember\r")
        await terminal.until("Found.")
        terminal.type("\x12")
        await terminal.until("Search earlier messages")
        terminal.type("remem\r")
        await terminal.until("> a word to remember\nmode")
        terminal.type("\x03")
        await leave(terminal)

    assert r"pasted line 299 and first\nsecond\nthird" in server.requests[0].raw.decode()
    sent = Path(f"{project}-state", "prompts.jsonl").read_text()
    assert "pasted line 299 and first" in json.loads(sent.split("\n")[0])  # for another session, too


@pytest.mark.parametrize("columns", [40, 100])
async def test_a_narrow_terminal_without_colour_shows_everything_in_its_width(project: Path, columns: int) -> None:
    words = "A sentence that is longer than a narrow terminal is wide, with 漢字, 👩 and e\u0301 in it. "
    async with ModelServer([Reply((Text(words * 3),), piece=9), Reply((CHECK,)), said("Done.")], strict=True) as server:
        env = {**variables(server, project), "NO_COLOR": "1"}
        async with Conversing(project, env, "Say much.", columns=columns, rows=30) as terminal:
            await terminal.until("in it.")
            terminal.type("Run the checks.\r")
            await terminal.until("a number, or arrows and Enter")
            terminal.type("1")
            await terminal.until("Done.")
            await leave(terminal)
    assert not re.search(r"\x1b\[([0-9]*;)*[349][0-7]m", terminal.raw)
    assert "3 passed" in terminal.whole


async def test_a_resize_at_any_moment_leaves_one_input_line(project: Path) -> None:
    text = "\n\n".join(f"Paragraph {number} of the answer." for number in range(30))
    async with (
        ModelServer([Reply((Text(text),), piece=11)], strict=True) as server,
        Conversing(project, variables(server, project), "Say much.", columns=100, real=True) as terminal,
    ):
        await terminal.until("Paragraph 3 ")
        for size in (60, 90, 45, 100):
            terminal.resize(size)
        await terminal.until("Paragraph 29 of the answer.")
        terminal.type("typed")
        await terminal.until("> typed")
        terminal.type("\x03")
        await leave(terminal)
    for number in range(30):
        assert f"Paragraph {number} of the answer." in terminal.whole


async def test_line_by_line_everything_can_be_done_and_nothing_is_drawn_twice(project: Path) -> None:
    options = [{"label": label, "description": f"the {label} one"} for label in ("north", "south", "east")]
    walls = {"question": "Which walls?", "header": "Walls", "options": options, "multiSelect": True}
    ask = ToolUse("t2", "AskUserQuestion", {"questions": [walls]})
    async with (
        ModelServer([Reply((CHECK,)), Reply((ask,)), said("Checked.")], strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.", "--plain") as terminal,
    ):
        await terminal.until("Type a number, then Enter; y is 1; n is 4; 3e edits 3")
        assert "3. Yes, always: Bash(./check --all)" in terminal.whole
        terminal.type("3e\n")
        await terminal.until("It is: Bash(./check --all)")
        terminal.type("Bash(./check *)\n")
        await terminal.until("Which walls?")
        await terminal.until("Type the numbers of all that fit")
        terminal.type("3, 1\n")
        await terminal.until("Checked.")
        terminal.type("/mode plan\n")
        await terminal.until("The mode is plan.")
        terminal.type("!echo by-hand; exec sleep 600\n")
        await terminal.until("\nby-hand")
        terminal.type("\x03")
        await terminal.until("interrupted")
        terminal.type("/exit\n")
        assert await terminal.code() == 0
    assert (project / "ran").exists()
    assert "Bash(./check *)" in (project / ".handrail" / "settings.local.json").read_text()
    assert r"Which walls?\n  east, north" in server.requests[2].raw.decode()
    assert "\x1b" not in terminal.raw
    assert "handrail --resume" in terminal.whole


async def test_settings_choose_the_status_line_and_own_keys(project: Path) -> None:
    async with ModelServer([said("Hello.")], strict=True) as server:
        env = variables(server, project)
        home = Path(env["HOME"]) / ".handrail"
        home.mkdir(parents=True, exist_ok=True)
        line = {"type": "command", "command": "printf 'own %s' line"}
        (home / "settings.json").write_text(json.dumps({"statusLine": line, "theme": "light"}))
        (home / "keybindings.json").write_text(json.dumps({"next-mode": "f5", "fly": "f6"}))
        async with Conversing(project, env) as terminal:
            await terminal.until("there is no action 'fly'")
            await terminal.until("own line")
            terminal.type("\x1b[15~")
            await terminal.until("mode acceptEdits")
            await leave(terminal)


async def test_the_transcript_has_every_input_and_decision_and_another_session_can_be_resumed(
    project: Path,
) -> None:
    async with (
        ModelServer([said("The first one."), Reply((CHECK,)), said("Checked.")], strict=True) as server,
        Conversing(project, variables(server, project), "Begin a first session.") as first,
    ):
        await first.until("The first one.")
        await leave(first)
        async with Conversing(
            project, variables(server, project), "Run the checks.", "--allowedTools", "Bash(./check *)", rows=40
        ) as terminal:
            await terminal.until("Checked.")
            terminal.type("\x0f")
            await terminal.until("q leaves, / searches")
            assert "decision: allow" in terminal.shown
            assert '"command": "./check --all"' in terminal.shown
            terminal.type("q")
            await terminal.until("mode default")
            terminal.type("/resume\r")
            await terminal.until("Go on with which session?")
            terminal.type("first\r")
            await terminal.until("The first one.")
            terminal.type("/exit\r")
            assert await terminal.code() == 0
        async with Conversing(project, variables(server, project), "--resume") as chosen:
            await chosen.until("Go on with which session?")
            await chosen.until("> Run the checks.")
            chosen.type("first session")
            await chosen.until("> Run the checks.", gone=True)
            chosen.type("\r")
            await chosen.until("The first one.")
            await leave(chosen)


async def test_agents_skills_and_plugins_are_listed_and_a_plan_names_the_mode_that_follows(project: Path) -> None:
    replies = [Reply((ToolUse("t1", "ExitPlanMode", {}),)), said("I go on.")]
    async with ModelServer(replies, strict=True) as server:
        env = variables(server, project)
        home = Path(env["HOME"]) / ".handrail"
        (home / "agents").mkdir(parents=True)
        (home / "agents" / "finder.md").write_text("---\nname: finder\ndescription: Finds it.\n---\nFind it.\n")
        (home / "skills" / "tidy").mkdir(parents=True)
        (home / "skills" / "tidy" / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies up.\n---\nTidy.\n")
        async with Conversing(project, env, rows=40) as terminal:
            await terminal.until("mode default")
            terminal.type("/agents\r")
            await terminal.until("finder (user): Finds it.")
            terminal.type("/skills\r")
            await terminal.until("/tidy (user): Tidies up.")
            terminal.type("/plugins\r")
            await terminal.until("No plugins were added.")
            terminal.type("/mode acceptEdits\r")
            await terminal.until("The mode is acceptEdits.")
            terminal.type("/plan the repair\r")
            await terminal.until_asked()
            assert "> 1. Yes, and go on in mode acceptEdits" in terminal.shown
            terminal.type("1")
            await terminal.until("I go on.")
            await terminal.until("mode acceptEdits (Shift+Tab)")
            terminal.type("/plan\r")
            await terminal.until("mode plan (Shift+Tab)")
            terminal.type("/plan\r")
            await terminal.until("There is no plan yet.")
            await leave(terminal)
    assert "the repair" in server.requests[0].raw.decode()


async def test_a_bare_start_says_how_to_begin_and_resume_without_an_id_needs_sessions(project: Path) -> None:
    async with ModelServer([], strict=True) as server:
        async with Conversing(project, variables(server, project)) as terminal:
            await terminal.until("/help shows more")
            await leave(terminal)
        async with Conversing(project, variables(server, project), "--resume") as terminal:
            await terminal.until("this folder has no session yet")
            assert await terminal.code() == 1


async def test_a_mistyped_command_is_named_and_not_sent_and_a_path_is_sent(project: Path) -> None:
    async with (
        ModelServer([said("I look."), said("I look too.")], strict=True) as server,
        Conversing(project, variables(server, project)) as terminal,
    ):
        await terminal.until("/help shows more")
        terminal.type("/cler\r")
        await terminal.until("There is no command /cler. Did you mean '/clear'?")
        terminal.type("/etc/hosts is broken\r")
        await terminal.until("I look.")
        terminal.type("/tmp is full\r")
        await terminal.until("I look too.")
        await leave(terminal)

    assert "/cler" not in server.requests[-1].raw.decode()
    assert "/etc/hosts is broken" in server.requests[0].raw.decode()


async def test_paths_of_images_and_resources_of_servers_go_along_with_a_prompt(project: Path) -> None:
    (project / "my shot.PNG").write_bytes(PIXEL)
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"ref": reference_server()}}))
    async with (
        ModelServer([said("A picture."), said("Sunny.")], strict=True) as server,
        Conversing(project, variables(server, project), "--trust", "--allowedTools", "mcp__ref") as terminal,
    ):
        await terminal.until("mode default")
        terminal.type(r"What is in my\ shot.PNG, and in none.png?" + "\r")
        await terminal.until("A picture.")
        assert r"> What is in @my\ shot.PNG, and in none.png?" in terminal.whole
        terminal.type("and in @re")
        await terminal.until("ref:  ")
        terminal.type("f:today")
        await terminal.until("ref:notes://today")
        terminal.type("\t\r\r")
        await terminal.until("Sunny.")
        await leave(terminal)

    assert '"type": "image"' in server.requests[0].raw.decode().replace('":"', '": "')
    assert "@ref:notes://today" in server.requests[1].raw.decode()
    assert "sunny" in server.requests[1].raw.decode()


@pytest.mark.parametrize("way", [(), ("--plain",)], ids=["drawn", "line by line"])
async def test_an_image_in_the_clipboard_goes_along_with_the_message(project: Path, way: tuple[str, ...]) -> None:
    programs = project.parent / "programs"
    programs.mkdir()
    (programs / "image.png").write_bytes(PIXEL)
    (programs / "xclip").write_text(f"#!/bin/sh\ncat {programs}/image.png\n")
    (programs / "xclip").chmod(0o755)
    async with ModelServer([said("A picture.")], strict=True) as server:
        env = variables(server, project)
        env |= {"DISPLAY": ":7", "PATH": f"{programs}:{env['PATH']}"}
        env.pop("WAYLAND_DISPLAY", None)
        async with Conversing(project, env, *way) as terminal:
            await terminal.until("/help shows")
            if way:
                terminal.type("/paste-image\r")
            else:
                await terminal.until("mode default")
                terminal.type("\x16")
            await terminal.until("> [image #1]")
            terminal.type("What is it?\r")
            await terminal.until("A picture.")
            (programs / "xclip").write_text("#!/bin/sh\nexit 1\n")
            terminal.type("/paste-image\r")
            await terminal.until("There is no image in the clipboard.")
            terminal.type("/exit\r")
            assert await terminal.code() == 0
    *_, text, image = server.requests[0].body["messages"][-1]["content"]
    assert text["text"].strip() == "[image #1] What is it?"
    assert base64.b64decode(image["source"]["data"]) == PIXEL


@pytest.mark.parametrize(
    ("env", "platform", "said_then"),
    [
        pytest.param({}, "linux", "There is no desktop", id="over ssh"),
        pytest.param({"WAYLAND_DISPLAY": "w"}, "linux", "Install wl-clipboard", id="Wayland"),
        pytest.param({"DISPLAY": ":0"}, "linux", "Install xclip", id="X"),
        pytest.param({}, "darwin", "Install pngpaste", id="macOS"),
    ],
)
async def test_without_a_way_to_the_clipboard_what_to_do_is_said(
    env: dict[str, str], platform: str, said_then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HandrailError, match=said_then):
        await read_clipboard_image(env, platform)


async def test_in_vi_escape_ends_typing_before_it_interrupts(project: Path) -> None:
    async with (
        ModelServer([said("Read.")], strict=True) as server,
        Conversing(project, variables(server, project)) as terminal,
    ):
        await terminal.until("mode default")
        terminal.type("/vim\r")
        await terminal.until("Editing is like vi now.")
        terminal.type("some old words")
        await terminal.until("> some old words")
        terminal.type("\x1b")
        await terminal.until("vi commands (i types)")
        terminal.type("0wdw")
        await terminal.until("> some words")
        terminal.type("A\r")
        await terminal.until("Read.")
        terminal.type("/exit\r")
        assert await terminal.code() == 0
    assert '"some words"' in server.requests[0].raw.decode()


async def test_the_transcript_of_a_resumed_conversation_begins_where_it_began(project: Path) -> None:
    async with ModelServer([Reply((CHECK,)), said("Checked.")], strict=True) as server:
        allowed = ("--allowedTools", "Bash(./check *)")
        async with Conversing(project, variables(server, project), "Run the checks.", *allowed) as first:
            await first.until("Checked.")
            await leave(first)
        async with Conversing(project, variables(server, project), "--continue", rows=40) as terminal:
            await terminal.until("Checked.")
            await terminal.until("mode default")
            terminal.type("\x0f")
            await terminal.until("q leaves, / searches")
            assert "--- earlier you" in terminal.shown
            assert '"command": "./check --all"' in terminal.shown
            terminal.type("q")
            await terminal.until("mode default")
            terminal.type("/exit\r")
            assert await terminal.code() == 0


async def test_line_by_line_the_greeting_names_the_key_that_interrupts_there(project: Path) -> None:
    async with (
        ModelServer([], strict=True) as server,
        Conversing(project, variables(server, project), "--plain") as terminal,
    ):
        await terminal.until("Ctrl+C interrupts")
        assert "Esc" not in terminal.whole
        terminal.type("/exit\n")
        assert await terminal.code() == 0


async def test_line_by_line_a_refused_call_is_said_to_be_an_interruption(project: Path) -> None:
    async with (
        ModelServer([Reply((CHECK,))], strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.", "--plain") as terminal,
    ):
        await terminal.until("Type a number, then Enter")
        terminal.type("4\n")
        await terminal.until("it was interrupted while tools were running")
        terminal.type("/exit\n")
        assert await terminal.code() == 0


@pytest.mark.parametrize(
    ("typed", "comes", "runs"),
    [
        ("y", "Told.", True),
        ("YES", "Told.", True),
        ("n", "it was interrupted while tools were running", False),
        ("no", "it was interrupted while tools were running", False),
        ("n read them instead", "Told.", False),
        ("yes please", "Type a number from 1 to 6, or y, or n.", False),
    ],
)
async def test_line_by_line_yes_and_no_answer_a_question_about_a_call(
    project: Path, typed: str, comes: str, runs: bool
) -> None:
    async with (
        ModelServer([Reply((CHECK,)), said("Told.")], strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.", "--plain", columns=100) as terminal,
    ):
        await terminal.until("y is 1; n is 4")
        terminal.type(f"{typed}\n")
        await terminal.until(comes)
    assert (project / "ran").exists() is runs
    assert ("read them instead" in server.requests[-1].raw.decode()) is typed.endswith("instead")


async def test_a_small_terminal_shows_what_is_asked_about_and_ctrl_o_all_of_it(project: Path) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    call = ToolUse("t1", "Bash", {"command": f"./check {words}"})
    async with (
        ModelServer([Reply((call,)), said("Checked.")], strict=True) as server,
        Conversing(project, variables(server, project), "Run the checks.", columns=60, rows=16) as terminal,
    ):
        await terminal.until_asked()
        assert "  command: ./check word0 word1" in terminal.shown
        assert "more lines, Ctrl+O shows them" in terminal.shown
        assert "  5. No, and say what to do instead" in terminal.shown
        terminal.type("\x0f")
        await terminal.until("q leaves, / searches")
        assert "word39" in terminal.shown
        assert "why: " in terminal.shown
        terminal.type("q")
        await terminal.until_asked()
        terminal.type("1")
        await terminal.until("Checked.")
        terminal.type("/exit\r")
        assert await terminal.code() == 0
