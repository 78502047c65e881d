"""The first day of a developer who runs `handrail` on a terminal, in a pipe and in a script."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from handrail.cli.flags import read_flags
from handrail.cli.session_flags import session_spec
from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.cli.test_run import HELLO, handrail, variables
from tests.on_terminal import OnTerminal

pytestmark = pytest.mark.anyio

PYTEST = ToolUse("t1", "Bash", {"command": "./check --all"})
HOSTILE = "\x1b]0;owned\x07"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "check").write_text("#!/bin/sh\ntouch ran\necho 3 passed\n")
    (folder / "check").chmod(0o755)
    return folder


@pytest.mark.parametrize("columns", [60, 200])
async def test_the_answer_streams_and_each_call_has_a_line_that_fits(project: Path, columns: int) -> None:
    (project / "notes.txt").write_text("one\ntwo\n")
    script = "echo begun; until [ -e go ]; do sleep 0.02; done; echo " + "long " * 60
    wait = ToolUse("t2", "Bash", {"command": script})
    more = asyncio.Event()
    replies = [
        Reply((Text(f"I look.{HOSTILE}"), ToolUse("t1", "Read", {"file_path": "notes.txt"}), wait)),
        Reply((Text("All is well. Really."),), piece=13, gates={3: more}),
    ]
    async with (
        ModelServer(replies, strict=True) as server,
        OnTerminal(
            project,
            variables(server, project),
            "-p",
            "Is all well?",
            "--allowedTools",
            "Bash(echo *)",
            "Bash(until *)",
            "Bash(sleep *)",
            columns=columns,
        ) as terminal,
    ):
        await terminal.until(" s, begun")
        assert "\n> Bash echo begun; until" in terminal.shown
        (project / "go").touch()
        await terminal.until("All is well.")
        assert "Really" not in terminal.raw
        more.set()
        assert await terminal.code() == 0

    look, read, ran, answer = terminal.shown.splitlines()
    assert look == r"I look.\x1b]0;owned\x07"
    assert read == "- Read notes.txt: 2 lines"
    assert re.fullmatch(r"- Bash echo begun; until.*: long long.*\.\.\.( \(\d+ s\))?", ran)
    assert answer == "All is well. Really."
    assert max(map(len, terminal.shown.splitlines())) < columns
    assert "\x07" not in terminal.raw


@pytest.mark.proves("O1")
async def test_a_long_call_is_named_while_the_model_still_writes_it(project: Path) -> None:
    write = ToolUse("t1", "Write", {"file_path": "notes.txt", "content": "word " * 500})
    held = asyncio.Event()
    async with (
        ModelServer([Reply((write,), piece=100, gates={15: held}), HELLO], strict=True) as server,
        OnTerminal(
            project, variables(server, project), "-p", "Write it.", "--permission-mode", "acceptEdits", columns=100
        ) as terminal,
    ):
        await terminal.until("> the model is writing Write notes.txt, 1.")
        held.set()
        assert await terminal.code() == 0

    assert "writing" not in terminal.shown


async def test_a_question_is_answered_by_what_is_typed_after_it(project: Path) -> None:
    held = asyncio.Event()
    again = ToolUse("t2", "Bash", {"command": "./check --fast"})
    replies = [Reply((PYTEST,), gates={0: held}), Reply((again,)), Reply((Text("Checked."),))]
    async with (
        ModelServer(replies, strict=True) as server,
        OnTerminal(project, variables(server, project), "-p", "Run the checks.", columns=60) as terminal,
    ):
        await terminal.until("waiting for the model")
        terminal.type("y\n")  # typed before there is a question
        await terminal.until("y\r\n")
        held.set()
        await terminal.until("Allow it?")
        terminal.type("perhaps\n")
        await terminal.until("Allow it?", times=2)
        assert not (project / "ran").exists()
        terminal.type("n use --fast\n")
        await terminal.until("Allow it?", times=3)
        terminal.type("y\n")
        assert await terminal.code() == 0

    assert (project / "ran").exists()
    assert "refused: use --fast" in terminal.shown
    assert "- Bash ./check --fast: 3 passed" in terminal.shown
    assert "command: ./check --all" in terminal.shown
    assert "use --fast" in server.requests[1].raw.decode()
    assert "To allow" not in terminal.shown
    assert max(map(len, terminal.shown.splitlines())) < 60


@pytest.mark.proves("R5")
async def test_the_model_is_told_the_same_whether_a_person_is_asked_or_not(project: Path) -> None:
    async with ModelServer([Reply((PYTEST,)), HELLO], strict=True) as asked:
        arguments = ("-p", "Run the checks.", "--ask")
        async with OnTerminal(project, variables(asked, project), *arguments) as terminal:
            await terminal.until("Allow it?")
            terminal.type("y\n")
            assert await terminal.code() == 0
    _, alone = await handrail([HELLO], project, "-p", "Run the checks.", "--no-ask")

    before, after = asked.requests[0].body, asked.requests[1].body
    assert before["system"] == after["system"] == alone.requests[0].body["system"]
    assert "at most a person is asked whether a call may run" in json.dumps(before["system"])


async def test_always_says_which_rule_it_adds_and_where(project: Path) -> None:
    calls = [Reply((ToolUse(f"t{n}", "Bash", {"command": f"npm run lint -- {n}"}),)) for n in range(2)]
    (project / "npm").write_text("#!/bin/sh\necho linted $4\n")
    (project / "npm").chmod(0o755)
    async with ModelServer([*calls, HELLO], strict=True) as server:
        path = {"PATH": f"{project}:{os.environ['PATH']}"}
        async with OnTerminal(project, variables(server, project) | path, "-p", "Lint it.", columns=200) as terminal:
            await terminal.until("Allow it?")
            assert "always: Bash(npm run lint *) (in .handrail/settings.local.json)" in terminal.shown
            terminal.type("a\n")
            assert await terminal.code() == 0

    assert terminal.raw.count("Allow it?") == 1
    assert "- Bash npm run lint -- 1: linted 1" in terminal.shown
    written = json.loads((project / ".handrail" / "settings.local.json").read_text())
    assert written["permissions"]["allow"] == ["Bash(npm run lint *)"]


async def test_a_yes_for_one_agent_counts_for_that_agent_alone(project: Path) -> None:
    tasks = [
        Reply((ToolUse(f"a{n}", "Agent", {"description": "d", "prompt": f"hand {n}"}),), to="zeppelin") for n in (1, 2)
    ]
    made = [
        Reply((ToolUse(f"m{n}{each}", "Bash", {"command": f"mkdir made{n}{each}"}),), to=f"hand {n}")
        for n in (1, 2)
        for each in "xy"
    ]
    ends = [Reply((Text("Done."),), to=f"hand {n}") for n in (1, 2)]
    replies = [*tasks, Reply((Text("All done."),), to="zeppelin"), *made, *ends]
    async with (
        ModelServer(replies, strict=True) as server,
        OnTerminal(project, variables(server, project), "-p", "zeppelin", columns=200) as terminal,
    ):
        await terminal.until("t = for this agent, s = for all agents")
        terminal.type("t\n")
        await terminal.until("Allow it?", times=2)
        assert (project / "made1x").is_dir()
        assert (project / "made1y").is_dir()  # of the same agent, unasked
        terminal.type("s\n")
        assert await terminal.code() == 0

    assert (project / "made2y").is_dir()
    assert terminal.raw.count("Allow it?") == 2
    assert not (project / ".handrail").exists()


@pytest.mark.proves("G36")
async def test_a_plain_no_ends_the_turn_of_the_main_agent_and_a_sub_agent_goes_on(project: Path) -> None:
    call = Reply((ToolUse("b", "Bash", {"command": "mkdir made"}),), to="hand")
    task = Reply((ToolUse("a", "Agent", {"description": "d", "prompt": "hand"}),), to="zeppelin")
    ends = [Reply((Text("I leave it."),), to="hand"), Reply((Text("All told."),), to="zeppelin")]
    for prompt, replies, code, asked in (("hand", [call], 1, 1), ("zeppelin", [task, call, *ends], 0, 4)):
        async with (
            ModelServer(replies, strict=True) as server,
            OnTerminal(project, variables(server, project), "-p", prompt, columns=200) as terminal,
        ):
            await terminal.until("Allow it?")
            terminal.type("n\n")
            assert (await terminal.code(), len(server.requests)) == (code, asked)

    assert not (project / "made").exists()


async def test_ctrl_c_ends_the_run_in_the_middle_of_a_question(project: Path) -> None:
    async with (
        ModelServer([Reply((PYTEST,))], strict=True) as server,
        OnTerminal(project, variables(server, project), "-p", "Run the checks.", controlled=True) as terminal,
    ):
        await terminal.until("Allow it?")
        terminal.type("y\x03")
        assert await terminal.code() == 130

    assert not (project / "ran").exists()


async def test_a_refusal_names_the_flag_that_helps_and_a_script_can_tell(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, wish = ToolUse("t1", "Bash", {"command": "check --all"}), "Run the checks."
    (project / "check").rename(project.parent / "check")
    monkeypatch.setenv("PATH", f"{project.parent}:{os.environ['PATH']}")

    ran, _ = await handrail([Reply((check,)), HELLO], project, wish, "--fail-on-denial")
    assert (ran.code, ran.out) == (3, "Hello there.\n")
    named = re.search(r"To allow what was refused: add (--allowedTools '(.*)')\.\n", ran.errors)
    assert named

    ran, _ = await handrail([Reply((check,)), HELLO], project, wish, "--output-format", "json")
    [denial] = ran.lines[0]["permission_denials"]
    assert (ran.code, denial["allow_with"], denial["unasked"]) == (0, named[1], True)

    ran, _ = await handrail([Reply((check,)), HELLO], project, wish, "--fail-on-denial", "--allowedTools", named[2])
    assert (ran.code, ran.errors) == (0, "")
    assert (project / "ran").exists()


async def test_a_limit_says_its_number_and_how_to_go_on(project: Path) -> None:
    look = Reply((ToolUse("t1", "Glob", {"pattern": "*"}),))

    ran, _ = await handrail([look], project, "Look around.", "--max-turns", "1")
    assert ran.code == 1
    assert "the limit of 1 turn was reached\n" in ran.errors
    assert '`handrail -p --continue "Go on."` goes on from here' in ran.errors

    ran, server = await handrail([HELLO], project, "-p", "--continue", "Go on.")
    assert (ran.code, ran.out) == (0, "Hello there.\n")
    assert "Look around." in server.requests[0].raw.decode()


async def test_a_run_that_ended_in_a_loop_says_how_to_go_on(project: Path) -> None:
    looks = [Reply((ToolUse(f"t{n}", "Glob", {"pattern": "*"}),)) for n in range(12)]

    ran, _ = await handrail(looks, project, "Look around.")

    assert ran.code == 1
    assert "Glob was called 12 times in a row with the same input and gave the same result." in ran.errors
    assert '`handrail -p --continue "Go on."` goes on from here; say what to do instead of the call' in ran.errors


async def test_a_run_has_a_limit_of_turns_unless_a_program_drives_it() -> None:
    def turns(*arguments: str) -> int | None:
        return session_spec(read_flags(arguments).chosen).limits.turns

    assert (turns("-p", "x"), turns("x y"), turns("-p", "x", "--max-turns", "3")) == (2_000, 2_000, 3)
    assert turns("--output-format", "stream-json", "--input-format", "stream-json") is None


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("help",), 0, "usage: handrail"),
        (("help", "undo"), 0, "usage: handrail undo"),
        (("docter",), 2, "there is no command 'docter'. Did you mean 'doctor'?"),
        (("fix",), 2, "Put a prompt in quotes"),
        (("call", "Raed", "{}"), 2, "There is no tool 'Raed'. Did you mean 'Read'?"),
        (("call", "Frobnicate", "{}"), 2, "handrail: `handrail tools` lists the tools"),
        (
            ("Say hello.", "--tools", "Raed"),
            0,
            "no built-in tool 'Raed' here, so it is left out. Did you mean 'Read'?",
        ),
    ],
)
async def test_slips_get_a_hint(project: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran, _ = await handrail([HELLO], project, *arguments)

    assert ran.code == code
    assert said in ran.out + ran.errors


async def test_working_in_the_home_folder_is_warned_about(project: Path) -> None:
    (project / "home").mkdir()
    async with (
        ModelServer([HELLO]) as server,
        OnTerminal(project / "home", variables(server, project), "-p", "Say hello.", columns=60) as terminal,
    ):
        assert await terminal.code() == 0

    assert "handrail: the agent works in your home folder" in terminal.shown
    assert terminal.shown.splitlines()[-1] == "Hello there."


async def test_what_handrail_says_about_a_run_is_wrapped_to_the_terminal(project: Path) -> None:
    touch = ToolUse("t1", "Bash", {"command": "touch a-file-with-a-name"})
    replies = [Reply((touch,)), Reply((Text("Done."),))]
    async with (
        ModelServer(replies, strict=True) as server,
        OnTerminal(project, variables(server, project), "-p", "Touch it.", "--no-ask", columns=60) as terminal,
    ):
        assert await terminal.code() == 0

    assert terminal.shown.count("not covered by a rule") == 1  # with its call, and not again at the end
    assert "there is no one to ask" in " ".join(terminal.shown.split())  # whole, also where it is narrow
    *lines, way_out = terminal.shown.splitlines()
    assert way_out == "handrail: To allow what was refused: add --allowedTools 'Bash(touch *)'."  # whole, to be copied
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize(("columns", "least"), [(60, 50), (200, 100)])
async def test_a_report_of_a_program_that_was_just_started_is_as_wide_as_the_terminal(
    project: Path, columns: int, least: int
) -> None:
    environment = {**os.environ, "HOME": str(project / "home"), "HANDRAIL_STATE_DIR": f"{project}-state"}
    async with OnTerminal(project, environment, "tools", columns=columns, controlled=True) as terminal:
        assert await terminal.code() == 0

    assert least < max(map(len, terminal.shown.splitlines())) <= columns


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("-p", "--help"), 0), (("call", "--help"), 0), (("-p", "hello", "--disallowedTool", "Bash", "Read"), 2)],
)
async def test_help_and_slips_fit_a_narrow_terminal(project: Path, arguments: tuple[str, ...], code: int) -> None:
    async with OnTerminal(project, dict(os.environ), *arguments, columns=60) as terminal:
        assert await terminal.code() == code

    assert [line for line in terminal.shown.splitlines() if len(line) > 60] == []
    assert "--disallowedTools" in terminal.shown


async def test_a_wide_rule_is_told_of_once_and_not_lost_in_a_run_without_calls(project: Path) -> None:
    (project / ".handrail").mkdir()
    (project / ".handrail" / "settings.json").write_text('{"permissions": {"allow": ["Bash(make *)"]}}')
    look = [Reply((ToolUse("t1", "Bash", {"command": "./check"}),)), HELLO]
    flags = ("Look around.", "--trust")

    runs = [(await handrail(replies, project, *flags))[0] for replies in ([HELLO], look, look)]
    by_flag, _ = await handrail(look, project, *flags, "--allowedTools", "Bash(git *)")

    assert [("Bash(make *) allows more" in ran.errors) for ran in runs] == [False, True, False]
    assert "Bash(git *) allow more than they seem to. Bash(git *): git discards work" in by_flag.errors
