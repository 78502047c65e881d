"""Memory files on disk: which are found, in which order, and what is not read."""

import os
import socket
from pathlib import Path

import pytest

from handrail import Agent
from handrail.loop.memory import MAX_FILE, MAX_TOTAL, Memory
from handrail.session.context.memory_files import Places, Switches, places, read_memory, read_memory_near
from handrail.testing import ScriptedModel, say, use


class Project:
    """A user, a repository with folders a/b, and nothing else."""

    def __init__(self, root: Path) -> None:
        self.home, self.tree = root / "home", root / "up" / "tree"
        self.cwd = self.tree / "a" / "b"
        (self.tree / ".git").mkdir(parents=True)
        self.cwd.mkdir(parents=True)
        self.home.mkdir()
        self.root = root

    def write(self, path: str, text: str | bytes = "") -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    def places(self) -> Places:
        user = (self.home / ".handrail", self.home / ".claude")
        return Places(self.cwd, self.tree, self.home, user, (self.root / "policy",))

    def read(self, **switches: object) -> Memory:
        return read_memory(self.places(), Switches(**switches))  # type: ignore[arg-type]  # fields by name

    def names(self, memory: Memory) -> list[str]:
        return [each.path.relative_to(self.root).as_posix() for each in memory.files]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path.resolve())


def problems(memory: Memory) -> list[str]:
    return [f"{problem.path.name} {problem.text}" for problem in memory.problems]


def test_files_come_from_policy_user_and_every_folder_down_to_the_working_one(project: Project) -> None:
    expected = [
        "policy/CLAUDE.md",
        "home/.handrail/AGENTS.md",
        "home/.claude/CLAUDE.md",
        "home/.claude/rules/style.md",
        "up/CLAUDE.md",
        "up/tree/AGENTS.md",
        "up/tree/.claude/rules/a/x.md",
        "up/tree/.claude/rules/z.md",
        "up/tree/CLAUDE.local.md",
        "up/tree/a/.claude/CLAUDE.md",
        "up/tree/a/b/CLAUDE.md",
        "up/tree/a/b/.claude/CLAUDE.md",
    ]
    for name in expected:
        project.write(name, name)
    project.write("up/tree/a/b/AGENTS.md", "not read beside a CLAUDE.md")
    project.write("up/tree/a/b/c/CLAUDE.md", "below")

    memory = project.read()

    assert project.names(memory) == expected
    assert [each.text for each in memory.files] == expected
    assert [each.scope for each in memory.files] == [
        "policy",
        *["user"] * 3,
        *["project"] * 4,
        "local",
        *["project"] * 3,
    ]
    assert memory.problems == ()
    assert project.names(project.read(project=False)) == [*expected[:4], "up/tree/CLAUDE.local.md"]
    assert project.names(project.read(project=False, local=False)) == expected[:4]
    assert "up/tree/CLAUDE.local.md" not in project.names(project.read(local=False))


def test_the_places_of_a_user_come_from_the_environment(project: Project) -> None:
    found = places(project.cwd, {"HOME": str(project.home), "HANDRAIL_CONFIG_DIR": "/somewhere"})

    assert (found.tree, found.home) == (project.tree, project.home)
    assert found.user == (Path("/somewhere"), project.home / ".claude")
    assert places(project.home, {"HOME": "/h"}).tree == project.home


def test_a_file_that_links_to_or_imports_the_other_is_not_read_twice(project: Project) -> None:
    project.write("up/tree/AGENTS.md", "The rules.")
    (project.tree / "CLAUDE.md").symlink_to("AGENTS.md")
    project.write("up/tree/a/AGENTS.md", "More rules.")
    project.write("up/tree/a/CLAUDE.md", "@AGENTS.md")

    memory = project.read()

    assert project.names(memory) == ["up/tree/CLAUDE.md", "up/tree/a/CLAUDE.md", "up/tree/a/AGENTS.md"]
    assert [each.text for each in memory.files] == ["The rules.", "@AGENTS.md", "More rules."]


def test_agents_md_is_read_when_claude_md_cannot_be(project: Project) -> None:
    project.write("up/tree/CLAUDE.md", b"\xff\xfe\x00")
    project.write("up/tree/AGENTS.md", "Readable.")

    memory = project.read()

    assert [each.text for each in memory.files] == ["Readable."]
    assert problems(memory) == ["CLAUDE.md was not read: not UTF-8 (invalid start byte at byte 0). Save it as UTF-8."]


def test_imports_follow_the_importing_file_four_steps_deep_and_in_circles_once(project: Project) -> None:
    project.write("up/tree/CLAUDE.md", "@docs/1.md and @someone and @docs/none.md")
    project.write("up/tree/docs/1.md", "@sub/2.md")
    project.write("up/tree/docs/sub/2.md", "@../3.md")
    project.write("up/tree/docs/3.md", "@4.md @1.md @../CLAUDE.md")
    project.write("up/tree/docs/4.md", "@5.md")
    project.write("up/tree/docs/5.md", "too deep")

    memory = project.read()

    assert [each.path.name for each in memory.files] == ["CLAUDE.md", "1.md", "2.md", "3.md", "4.md"]
    assert problems(memory) == [
        "4.md does not import '5.md': only 4 steps are followed. Import it earlier.",
        "CLAUDE.md imports 'docs/none.md', and there is no such file. Correct the path after the @.",
    ]


@pytest.mark.parametrize("name", ["../../secret.md", "~/secret.md", "{absolute}", "link.md", "linked/secret.md"])
def test_a_project_reaches_nothing_outside_its_tree_before_that_file_is_approved(project: Project, name: str) -> None:
    secret = project.write("home/secret.md", "secret")
    if name.startswith(".."):
        secret = project.write("secret.md", "secret")
        name = "../../secret.md"
    (project.tree / "link.md").symlink_to(secret)
    (project.tree / "linked").symlink_to(project.home)
    project.write("up/tree/CLAUDE.md", f"@{name.format(absolute=secret)}")

    memory = project.read()

    assert [each.text for each in memory.files][1:] == []
    assert [problem.needs_approval for problem in memory.problems] == [secret]
    assert f"leads to {secret}, outside of {project.tree}" in memory.problems[0].text
    assert [each.text for each in project.read(approved=frozenset({secret})).files][1:] == ["secret"]


@pytest.mark.parametrize("name", [".env", ".env.local", "conf/.aws/credentials", "deploy.pem", "link.md"])
def test_a_project_does_not_hand_files_with_secrets_to_the_model(project: Project, name: str) -> None:
    secret = project.write(f"up/tree/{name if name != 'link.md' else '.env'}", "secret")
    (project.tree / "link.md").symlink_to(project.tree / ".env")
    project.write("up/tree/CLAUDE.md", f"@{name} @.env.example")
    project.write("up/tree/.env.example", "made to be shown")

    memory = project.read()

    assert "secret" not in [each.text for each in memory.files]
    assert "made to be shown" in [each.text for each in memory.files]
    assert [problem.needs_approval for problem in memory.problems] == [secret]
    assert "secret" in [each.text for each in project.read(approved=frozenset({secret})).files]


def test_a_memory_file_that_links_out_of_the_tree_is_not_read(project: Project) -> None:
    secret = project.write("home/secret.md", "secret")
    (project.tree / "CLAUDE.md").symlink_to(secret)
    project.write("up/tree/.claude/rules/a.md", "a rule")
    (project.tree / ".claude/rules/b.md").symlink_to(secret)
    (project.tree / ".claude/rules/c").symlink_to(project.home)

    memory = project.read()

    assert [each.text for each in memory.files] == ["a rule"]
    assert [problem.needs_approval for problem in memory.problems] == [secret, secret]


def test_the_user_may_import_from_anywhere(project: Project) -> None:
    project.write("shared/team.md", "team")
    project.write("home/.claude/CLAUDE.md", f"@~/notes.md @{project.root}/shared/team.md")
    project.write("home/notes.md", "notes")

    assert [each.text for each in project.read().files][1:] == ["notes", "team"]


def test_a_file_above_the_project_that_others_may_write_is_not_read(project: Project) -> None:
    project.write("up/CLAUDE.md", "planted").chmod(0o666)
    project.write("up/tree/CLAUDE.md", "own").chmod(0o666)

    memory = project.read()

    assert [each.text for each in memory.files] == ["own"]
    assert "above the project" in memory.problems[0].text


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "circle", "nothing", "unreadable", "nul"])
def test_what_cannot_be_read_is_reported_and_stops_nothing(
    project: Project, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = project.tree / "CLAUDE.local.md"
    match kind:
        case "fifo":
            os.mkfifo(place)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                monkeypatch.chdir(project.tree)  # the name of a socket is short
                listener.bind(place.name)
        case "folder":
            place.mkdir()
        case "circle":
            place.symlink_to(place.name)
        case "nothing":
            place.symlink_to("gone.md")
        case "unreadable":
            place.symlink_to("/proc/1/environ" if os.getuid() else "/proc/self/mem")
        case "nul":
            place.write_bytes(b"a\0b")
    project.write("up/tree/a/CLAUDE.md", "still read")

    memory = project.read()

    assert [each.text for each in memory.files] == ["still read"]
    assert [problem.path for problem in memory.problems] == [place]


@pytest.mark.proves("R6")
def test_big_files_are_cut_and_too_many_are_left_out(project: Project) -> None:
    project.write("up/tree/CLAUDE.md", "ä" * (MAX_FILE + 5))
    for number in range(5):
        project.write(f"up/tree/a/.claude/rules/{number}.md", str(number) * (MAX_FILE - 100))

    memory = project.read()

    assert sum(len(each.text) for each in memory.files) <= MAX_TOTAL
    assert [each.path.name for each in memory.files] == ["1.md", "2.md", "3.md", "4.md"]
    assert [text.split(":")[0] for text in problems(memory)] == [
        "CLAUDE.md is cut after 40,000 characters. Shorten it, or move parts to files of their own.",
        "CLAUDE.md left out",
        "0.md left out",
    ]


def test_excluded_files_are_not_read_but_policy_always_is(project: Project) -> None:
    project.write("policy/CLAUDE.md", "policy")
    project.write("up/tree/CLAUDE.md", "tree")
    project.write("up/tree/a/CLAUDE.md", "a")

    memory = project.read(excludes=("**/tree/CLAUDE.md", f"{project.root}/policy/*"))

    assert [each.text for each in memory.files] == ["policy", "a"]


def test_line_ends_and_a_byte_order_mark_do_not_reach_the_model(project: Project) -> None:
    project.write("up/tree/CLAUDE.md", b"\xef\xbb\xbfone\r\ntwo\r\n")

    assert [each.text for each in project.read().files] == ["one\ntwo\n"]


def test_a_rule_without_a_pattern_in_its_paths_is_left_out_and_reported(project: Project) -> None:
    project.write("up/tree/.claude/rules/x.md", "---\npaths: []\n---\nrule")

    assert problems(project.read()) == [
        "x.md was left out: its `paths` '[]' hold no pattern. Write a list of globs, or take `paths` away."
    ]


def test_reading_a_file_adds_the_memory_of_its_folders_and_its_rules_once(project: Project) -> None:
    project.write("up/tree/.claude/rules/python.md", "---\npaths: '*.py'\n---\nPython rule")
    project.write("up/tree/a/b/c/CLAUDE.md", "of c @more.md")
    project.write("up/tree/a/b/c/more.md", "more of c")
    project.write("up/tree/a/b/c/d/AGENTS.md", "of d")
    project.write("up/tree/a/b/c/d/.claude/rules/r.md", "---\npaths: '*.md'\n---\nonly for md")
    start = project.read()
    assert start.files == ()

    touched = project.cwd / "c" / "d" / "x.py"
    known = read_memory_near(touched, project.places(), start)
    again = read_memory_near(touched, project.places(), known)

    assert [each.text for each in known.files] == ["of c @more.md", "more of c", "of d", "Python rule"]
    assert again is known
    later = read_memory_near(project.cwd / "c" / "d" / "y.md", project.places(), known)
    assert [each.text for each in later.files[len(known.files) :]] == ["only for md"]
    assert read_memory_near(touched, project.places(), start, Switches(project=False, local=False)) is start


@pytest.mark.anyio
async def test_a_memory_file_that_is_left_out_is_told_to_the_user_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    (project / "web").mkdir(parents=True)
    (project / "CLAUDE.md").write_bytes(b"caf\xe9")
    (project / "web" / "CLAUDE.md").write_bytes(b"a\0b")
    (project / "web" / "a.txt").write_text("a")
    model = ScriptedModel([[use("1", "Read", file_path="web/a.txt")], [say("Read.")], [say("Done.")]])
    env = {"HOME": str(tmp_path), "HANDRAIL_STATE_DIR": str(tmp_path / "state")}

    async with Agent(model, cwd=project, settings=True, env=env) as agent:
        await agent.ask("Look.")
        await agent.ask("Look again.")

    told = [line for line in capsys.readouterr().err.splitlines() if "memory file" in line]
    assert [line.partition(" was not read: ")[0] for line in told] == [
        "handrail: the memory file CLAUDE.md",
        "handrail: the memory file web/CLAUDE.md",
    ]
