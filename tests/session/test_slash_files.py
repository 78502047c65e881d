"""Commands in Markdown files, used in prompts."""

import os
from pathlib import Path

import pytest

from handrail.conversation.blocks import Image, Text
from handrail.conversation.messages import UserMessage
from handrail.session.slash_files import expand_command, fill_arguments, find_commands
from handrail.session.subagents import find_agents


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

    assert find_commands(tmp_path, {"HOME": str(home)}) == {}
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

    assert set(find_commands(cwd, {"HOME": str(home)})) == {"plain", "good"}
    agents, problems = find_agents(cwd, {"HOME": str(home)}, {})
    assert {name for name, each in agents.items() if each.source != "built-in"} == {"plain", "good"}
    assert len(problems) == 1

    write(home / ".claude/commands/mine.md", "x")
    (home / ".claude/commands/linked.md").symlink_to(tmp_path / target)  # one's own links are one's own
    assert "linked" in find_commands(cwd, {"HOME": str(home)})


def test_commands_are_found_and_the_nearest_of_a_name_counts(tmp_path: Path, home: Path) -> None:
    cwd = tmp_path / "proj"
    write(cwd / ".claude/commands/fix.md", "---\ndescription: Fixes it\nargument-hint: WHAT\n---\nFix $ARGUMENTS.")
    write(cwd / ".handrail/commands/deep/ship.md", "# Ship it\nNow.")
    write(home / ".claude/commands/fix.md", "not this one")
    write(home / ".claude/commands/mine.md", "Mine.")
    write(home / ".claude/commands/bad name.md", "no")
    write(home / ".claude/commands/huge.md", "x" * 300_000)

    found = find_commands(cwd, {"HOME": str(home)})

    assert {name: (each.description, each.hint) for name, each in found.items()} == {
        "fix": ("Fixes it", "WHAT"),
        "ship": ("Ship it", ""),
        "mine": ("Mine.", ""),
    }
    said = UserMessage((Text("/fix the bug"), Image("aGk=", "image/png")))
    whole, command = expand_command(said, found)
    assert whole == UserMessage((Text("Fix the bug."), Image("aGk=", "image/png")))
    assert command is not None
    assert (command.name, command.typed) == ("fix", "/fix the bug")


@pytest.mark.parametrize("text", ["hello /fix", "/unknown x", "/", "//fix", "/etc/passwd has what?", ""])
def test_what_is_no_command_is_left_as_it_is(tmp_path: Path, home: Path, text: str) -> None:
    write(home / ".claude/commands/fix.md", "Fix.")
    found = find_commands(tmp_path, {"HOME": str(home)})
    assert expand_command(UserMessage((Text(text),)), found) == (UserMessage((Text(text),)), None)


@pytest.mark.parametrize(
    ("body", "words", "text"),
    [
        ("Fix it.", "", "Fix it."),
        ("Fix it.", "now please", "Fix it.\n\nARGUMENTS: now please"),
        ("Fix $ARGUMENTS!", " now  please ", "Fix now  please!"),
        ("$1 before $0, $ARGUMENTS[1] and $7.", "a b", "b before a, b and ."),
        (r"It costs \$5 or \$ARGUMENTS.", "", "It costs $5 or $ARGUMENTS."),
        ("Say $0", "$1 $0", "Say $1"),
    ],
)
def test_words_go_where_the_command_wants_them(body: str, words: str, text: str) -> None:
    assert fill_arguments(body, words) == text
