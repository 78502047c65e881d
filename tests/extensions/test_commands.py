"""Commands in Markdown files: which there are, and what their text stands for."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.extensions.command_text import ShellCommand, fill_command, shell_commands
from handrail.extensions.commands import CommandFile, CommandFiles, find_commands
from handrail.extensions.places import config_folders
from handrail.session.agents.definitions import find_agents


def commands_in(cwd: Path, home: Path) -> CommandFiles:
    return find_commands(config_folders(cwd, {"HOME": str(home)}))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_pipe_or_device_in_the_place_of_a_command_or_agent_is_not_waited_for(tmp_path: Path, home: Path) -> None:
    for kind in ("commands", "agents"):
        folder = tmp_path / ".claude" / kind
        folder.mkdir(parents=True)
        os.mkfifo(folder / "pipe.md")
        (folder / "endless.md").symlink_to("/dev/zero")

    found_commands = commands_in(tmp_path, home)
    assert found_commands.by_name == {}
    assert len(found_commands.problems) == 2
    found, problems = find_agents(tmp_path, {"HOME": str(home)}, {})
    assert {agent.source for agent in found.values()} == {"built-in"}
    assert ["is not a regular file" in problem for problem in problems] == [True, True]


@pytest.mark.parametrize("target", ["home/.ssh/id_rsa", "proj/.env", "proj/.aws/x.md", "home/note.md"])
def test_a_link_that_leads_out_of_the_project_or_to_a_secret_is_no_command_and_no_agent(
    tmp_path: Path, home: Path, target: str
) -> None:
    cwd = tmp_path / "proj"
    write(tmp_path / target, "---\nname: spy\ndescription: d\n---\nsecret")
    write(cwd / "shared/good.md", "---\nname: good\ndescription: d\n---\nfine")
    for kind in ("commands", "agents"):
        write(cwd / ".claude" / kind / "plain.md", "---\nname: plain\ndescription: d\n---\nplain")
        (cwd / ".claude" / kind / "spy.md").symlink_to(tmp_path / target)
        (cwd / ".claude" / kind / "good.md").symlink_to(cwd / "shared/good.md")

    assert set(commands_in(cwd, home).by_name) == {"plain", "good"}
    agents, problems = find_agents(cwd, {"HOME": str(home)}, {})
    assert {name for name, each in agents.items() if each.source != "built-in"} == {"plain", "good"}
    assert len(problems) == 1

    write(home / ".claude/commands/mine.md", "x")
    (home / ".claude/commands/linked.md").symlink_to(tmp_path / target)  # one's own links are one's own
    assert "linked" in commands_in(cwd, home).by_name


def test_a_command_is_named_by_its_path_and_the_users_own_goes_before_the_projects(tmp_path: Path, home: Path) -> None:
    cwd = tmp_path / "repo" / "app"
    (tmp_path / "repo/.git").mkdir(parents=True)
    write(cwd / ".claude/commands/fix.md", "---\ndescription: Fixes it\nargument-hint: WHAT\n---\nFix $ARGUMENTS.")
    write(cwd / ".handrail/commands/front/build.md", "# Build it\nNow.")
    write(tmp_path / "repo/.claude/commands/fix.md", "farther away")
    write(tmp_path / "repo/.claude/commands/mine.md", "not this one")
    write(tmp_path / "repo/.claude/commands/top.md", "of the root")
    write(tmp_path / ".claude/commands/above.md", "of no repository of ours")
    write(home / ".claude/commands/mine.md", "Mine.")
    write(home / ".claude/commands/bad name.md", "no")
    write(home / ".claude/commands/huge.md", "x" * 300_000)
    write(home / ".claude/commands/gemini.toml", "prompt = 'x'")

    found = commands_in(cwd, home)

    assert {name: (each.description, each.hint, each.source) for name, each in found.by_name.items()} == {
        "mine": ("Mine.", "", "user"),
        "front:build": ("Build it", "", "project"),
        "fix": ("Fixes it", "WHAT", "project"),
        "top": ("of the root", "", "project"),
    }
    assert sorted(found.problems) == [
        "../.claude/commands/fix.md: /fix means .claude/commands/fix.md. Rename one of them to use both.",
        "../.claude/commands/mine.md: /mine means ~/.claude/commands/mine.md. Rename one of them to use both.",
        "~/.claude/commands/bad name.md: a command cannot have this name. Use letters, digits, - and _.",
        "~/.claude/commands/gemini.toml: it is not read, because its name does not end with .md",
        "~/.claude/commands/huge.md: it is larger than 200,000 bytes, and is not read",
    ]


def test_in_the_home_folder_its_commands_are_the_users_own(home: Path) -> None:
    write(home / ".claude/commands/mine.md", "!`ls`")
    assert commands_in(home, home).by_name["mine"].source == "user"


HEAD = """---
description: Ships it
argument-hint: [target]
arguments: target, when
allowed-tools: Bash(git add *), Bash(git status:*) Read
disallowed-tools: [WebFetch, "Bash(rm *)"]
model: haiku
effort: High
user-invocable: no
context: fork
hooks:
  PreToolUse:
    - matcher: Bash
colour: red
when_to_use: never
---
Ship to $target: !`git status`
"""


def test_what_a_command_says_of_itself_is_read_and_what_has_no_effect_is_named(tmp_path: Path, home: Path) -> None:
    write(home / ".claude/commands/ship.md", HEAD)
    write(home / ".claude/commands/old.md", "---\neffort: enormous\n? what\n---\nCompare $1 and $2")
    write(home / ".claude/commands/slip.md", "---\ndesciption: x\ndisallowed-tools: Bash(git\n---\nGo")

    found = commands_in(tmp_path, home)

    assert found.by_name["ship"] == CommandFile(
        "ship",
        "Ships it",
        "target",
        "Ship to $target: !`git status`",
        "haiku",
        "high",
        ("Bash(git add *)", "Bash(git status:*)", "Read"),
        ("WebFetch", "Bash(rm *)"),
        ("target", "when"),
        is_listed=False,
        file=str(home / ".claude/commands/ship.md"),
        shown="~/.claude/commands/ship.md",
        when="never",
        context="fork",
        hooks={"PreToolUse": [{"matcher": "Bash"}]},
        runs=("git status",),
        mark=found.by_name["ship"].mark,
    )
    where = "~/.claude/commands/old.md"
    assert found.problems == (
        f"{where}: '? what' is not a name and a value; the other lines of its front matter count",
        f"{where}: effort is 'enormous'. Use one of minimal, low, medium, high, xhigh, max.",
        f"{where}: it uses $1 and not $0: words are counted from 0, so that $0 is the first",
        "~/.claude/commands/ship.md: no effect: colour",
        "~/.claude/commands/slip.md: no effect: desciption (did you mean 'description'?)",
        "~/.claude/commands/slip.md: disallowed-tools holds 'Bash(git': the bracket is not closed; add ).",
    )


@pytest.mark.parametrize(
    ("body", "words", "text"),
    [
        ("Fix it.", "", "Fix it."),
        ("Fix it.", "now please", "Fix it.\n\nARGUMENTS: now please"),
        ("Fix $ARGUMENTS!", " now  please ", "Fix now  please!"),
        ("$1 before $0, $ARGUMENTS[1] and $7.", "a b", "b before a, b and ."),
        (r"It costs \$5 or \$ARGUMENTS.", "", "It costs $5 or $ARGUMENTS."),
        ("Say $0", "$1 $0", "Say $1"),
        ("$0|$1", "'a b' c", "a b|c"),
        ("$0|$1", "don't x", "don't|x"),
        ("$file in $when, not $HOME or ${HOME}", "a b", "a in b, not $HOME or ${HOME}"),
        ("${CLAUDE_PROJECT_DIR}/x", "", "/project/x"),
        ("$12345678901234567890", "a", "$12345678901234567890\n\nARGUMENTS: a"),
    ],
)
def test_words_go_where_the_command_wants_them(body: str, words: str, text: str) -> None:
    filled = fill_command(body, words, ("file", "when"), {"CLAUDE_PROJECT_DIR": "/project"})
    assert filled.with_outputs(()) == text


@pytest.mark.parametrize(
    ("body", "lines", "files"),
    [
        pytest.param("See !`git diff $0`.", ("git diff X",), (), id="a command after a blank"),
        pytest.param("!`a`\n!`b`", ("a", "b"), (), id="at the beginning of lines"),
        pytest.param("no!`a` and ! `b` and !``", (), (), id="inside a word it is only text"),
        pytest.param("```!\nls -l\npwd\n```\nend", ("ls -l\npwd",), (), id="a block"),
        pytest.param("Read @src/$0.py, (@b) and `@code`", (), ("src/X.py", "b"), id="files, not in code"),
        pytest.param("!`cat @x`", (), (), id="an at sign in a command is the command's"),
    ],
)
def test_commands_and_files_of_a_text_are_found(body: str, lines: tuple[str, ...], files: tuple[str, ...]) -> None:
    filled = fill_command(body, "X")
    expected = lines or (("cat @x",) if "cat" in body else ())
    assert tuple(each.line for each in filled.commands) == expected
    assert filled.files == files


PIECES = ["!", "`", "$", "0", "A", " ", "\n", "@", "\\", "ARGUMENTS", "```!\n", "\n```\n", "!`ls`"]
NASTY = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(body=NASTY, words=NASTY)
def test_no_word_and_no_output_can_become_a_command(body: str, words: str) -> None:
    filled = fill_command(body, words)
    assert len(filled.commands) == len(shell_commands(body))

    marked = filled.with_outputs([f"<{words}>" for _ in filled.commands])
    assert marked.count(f"<{words}>") >= len(filled.commands)
    assert all(isinstance(part, str | ShellCommand) for part in filled.parts)
