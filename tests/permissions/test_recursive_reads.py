"""A command that goes through a folder may read every file in it: none that would be asked for is read unasked."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.files import paths
from handrail.permissions import case
from tests.permissions.world import World

READERS = [
    "grep -r key .", "grep -rn key", "grep --recursive key src", "grep -d recurse key .",
    "grep --directories=recurse k .", "rg -uu key", "rg --hidden key .", "rg -. key src", "ag --hidden key",
    "ag -u key", "ack key", "diff -r src other", "diff src other", "find . -type f -exec cat {} +",
    "find src -exec grep key {} \\;", "find . | xargs cat", "find . -type f -print0 | xargs -0 head -n 1",
    "find . | head -n 5 | xargs grep key", "fd . src -H | xargs cat", "git ls-files | xargs cat",
    "git ls-files -z | xargs -0 cat", "git grep --untracked key", "cd src && grep -r key", "timeout 5 grep -r key .",
    "bash -c 'grep -r key src'", "echo $(grep -r key src)", "grep -r key sr*", "find . -exec grep -r key {} +",
    "cat a.txt; grep -R key src",
]  # fmt: skip
LEAVERS = [
    "grep -r key .", "grep -rn key", "grep --recursive key src", "grep -d recurse key .",
    "grep --directories=recurse k .", "cd src && grep -r key", "echo $(grep -r key src)", "rg -uu key",
    "rg --hidden key .", "rg -. key src",
]  # fmt: skip
"""Those that leave out a file by its name, which its name says holds secrets."""
FOLLOWERS = [
    "grep -R key .", "grep --dereference-recursive key src", "grep -rR key .", "rg -L key", "rg --follow key src",
    "ag -f key", "diff -r src other", "diff -rq src other", "find . -exec cat {} +", "find src -exec head {} \\;",
    "find . -name '*.txt' -print0 | xargs -0 cat", "find . | xargs cat", "find src | xargs -I{} cat {}",
    "find . \\( -type f -o -type l \\) -exec cat {} +", "find . -exec cat {} + -type f",
    "find src ! -type f -exec cat {} +",
    "find . -exec grep -r key {} +", "fd . src | xargs cat",
]  # fmt: skip
STAYERS = [
    "grep -r key .", "rg key", "ag key", "ack key", "find . -type f -exec cat {} +", "find . -type f | xargs cat",
    "find .", "find . -type f -print0 | xargs -0 cat", "ls -R", "find . | xargs wc -l", "cat a.txt", "tree",
    "git grep key",
]  # fmt: skip


def world(tmp_path: Path, *files: str) -> World:
    made = World(tmp_path)
    for name in ("a.txt", "src/b.txt", "src/sub/c.txt", "other/b.txt", *files):
        made.file(name)
    return made


@pytest.mark.parametrize("command", [*READERS, *FOLLOWERS, *STAYERS])
def test_a_folder_of_ordinary_files_is_gone_through_unasked(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command) == "allow"


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("name", ["src/sub/.env", "src/.ssh/config", "src/.keys/notes.txt"])
def test_a_file_that_would_be_asked_for_keeps_a_search_from_running_unasked(
    command: str, name: str, tmp_path: Path
) -> None:
    made = world(tmp_path, name)
    made.rules = {"ask": ["Read(.keys/**)"]}

    left_out = any(file.left_out for file in made.case("Bash", {"command": command}).files)

    assert left_out == (command in LEAVERS and ".keys" not in name)
    assert made.bash(command) == ("allow" if left_out else "ask")


@pytest.mark.proves("R3")
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions", "auto"])
@pytest.mark.parametrize("command", [*READERS, "npm test; grep -r key src"])
def test_no_mode_and_no_rule_lets_a_search_meet_a_denied_file(command: str, mode: str, tmp_path: Path) -> None:
    made = world(tmp_path, "src/sub/.private")
    made.mode, made.rules = mode, {"deny": ["Read(.private)"], "allow": ["Bash"]}

    decision = made.decide("Bash", {"command": command})

    assert decision.verdict.value == "ask"
    assert "Read(.private)" in decision.reason


@pytest.mark.parametrize("command", FOLLOWERS)
@pytest.mark.parametrize("target", ["/etc/passwd", "/home/dev/elsewhere", "/dev/tty", "/home/dev/proj/src/../../notes"])
def test_a_link_that_leads_out_keeps_a_search_from_following_it_unasked(
    command: str, target: str, tmp_path: Path
) -> None:
    made = world(tmp_path)
    made.file("/home/dev/elsewhere/f")
    made.file("/home/dev/notes")
    made.link("src/sub/link.txt", target)

    assert made.bash(command) == "ask"


@pytest.mark.parametrize("command", STAYERS)
def test_a_search_that_follows_no_links_does_not_mind_them(command: str, tmp_path: Path) -> None:
    made = world(tmp_path)
    made.link("src/sub/link.txt", "/etc/passwd")

    assert made.bash(command) == "allow"


def test_what_a_link_inside_leads_to_is_gone_through_as_well(tmp_path: Path) -> None:
    made = world(tmp_path, "other/deep/.env")
    made.link("src/sub/link", "/home/dev/proj/other")

    assert made.bash("grep -R key src") == "ask"
    assert made.bash("grep -r key src") == "allow"


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    made = world(tmp_path)
    made.link("src/up", "/home/dev/proj")
    made.link("other/over", "/home/dev/proj/src")

    assert made.bash("grep -R key src") == "allow"


def test_hidden_files_do_not_matter_to_searches_that_leave_them_out(tmp_path: Path) -> None:
    made = world(tmp_path, ".env", "src/.env")

    assert made.bash("ag key") == "allow"
    assert made.bash("ag -u key") == "ask"


def test_an_allow_rule_brings_a_secret_back(tmp_path: Path) -> None:
    made = world(tmp_path, ".env")
    made.rules = {"allow": ["Read(.env)"]}

    assert made.bash("grep -r key .") == "allow"


def test_a_folder_with_too_much_in_it_is_not_gone_through_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MAX_BENEATH", 3)

    assert world(tmp_path).bash("find . -type f -exec grep key {} +") == "ask"
    assert world(tmp_path).bash("find other -type f -exec grep key {} +") == "allow"


@pytest.mark.parametrize("command", ["grep -r key{}", "rg key{}", "rm -r{}", "mv{} other"])
def test_a_line_that_goes_through_folders_again_and_again_is_asked_for(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case, "MAX_LOOKED_AT", 8)
    made = world(tmp_path)
    made.rules = {"deny": ["Read(nothing/like/it)"], "allow": ["Bash(rm *)", "Bash(mv *)", "Edit(**)"]}
    once = command.format(" src")

    assert made.bash(once) == "allow"
    assert made.bash("; ".join([once] * 10)) == "ask"
    assert made.bash(command.format(" src" * 10)) == "ask"


@pytest.mark.proves("R3")
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions", "auto"])
def test_no_mode_and_no_rule_lets_a_search_meet_a_denied_file_among_too_many(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MAX_BENEATH", 3)
    made = world(tmp_path, "src/sub/.private")
    made.mode, made.rules = mode, {"deny": ["Read(.private)"], "allow": ["Bash"]}

    assert made.bash("grep -r key .") == "ask"


def test_a_search_that_leaves_secrets_out_may_be_as_long_as_it_likes_while_no_rule_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MAX_BENEATH", 3)
    made = world(tmp_path)

    assert made.bash("rg key") == "allow"
    assert made.bash("rg -L key") == "ask"
    assert made.bash("ag key") == "ask"  # it cannot be told to leave secrets out
    made.rules = {"deny": ["Read(nothing/like/it)"]}
    assert made.bash("rg key") == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "ls | xargs cat", "find . | xargs -I{} cat ../{}", "find . | xargs -I{} wc -l /etc/{}",
        "find . -type f | env -C /etc xargs cat", "find . -type f | xargs env --chdir=/etc cat",
        "find . -type f | nice env -C src xargs head", "cd src && find . -type f | (cd .. && xargs cat)",
        "env -C src find . -type f | xargs cat", "git ls-files | env -C src xargs cat", "find . | env -C /etc xargs ls",
    ],
)  # fmt: skip
def test_names_that_are_looked_for_elsewhere_are_not_those_of_the_listing(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command) == "ask"


@pytest.mark.parametrize("command", ["grep -R key .", "rg -L key", "find src -exec cat {} +"])
def test_links_of_a_folder_that_is_not_here_are_not_taken_for_harmless(command: str, tmp_path: Path) -> None:
    made = World(tmp_path)
    made.cwd = "/home/dev/proj/gone"

    assert made.bash(command) == "ask"
    assert made.bash("diff -ru src tests") == "allow"


@pytest.mark.parametrize("command", ["wc -l *", "cat src/*", "head s*/*", "ls *; cat *.txt"])
def test_a_wildcard_does_not_stand_for_names_that_begin_with_a_dot(command: str, tmp_path: Path) -> None:
    made = world(tmp_path, ".env", "src/.env")
    made.rules = {"deny": ["Read(.env)"]}

    assert made.bash(command) == "allow"


@pytest.mark.proves("R3")
@pytest.mark.parametrize(
    "command",
    [
        "cat .*", "cat .?nv", "cat .e*", "cat src/.e*", "shopt -s dotglob; cat *", "shopt -s dot\"glob\" && cat *",
        "GLOBIGNORE=x; cat *", "zsh -c 'setopt globdots; cat *'", "cat {.env,a.txt}",
    ],
)  # fmt: skip
def test_unless_the_line_says_so(command: str, tmp_path: Path) -> None:
    made = world(tmp_path, ".env", "src/.env")
    made.rules = {"deny": ["Read(.env)"], "allow": ["Bash"]}

    assert made.bash(command) in ("ask", "deny")


NAMED = [
    "find . -name '*.txt' -exec cat {} +", "find . -name '*.txt' | xargs grep key",
    "find src -iname '*.TXT' -exec cat {} +",
    "find . -type f -name '*.txt' -print0 | xargs -0 head", "find . -maxdepth 3 -name c.txt -exec grep -n key {} \\;",
]  # fmt: skip
NOT_BY_NAME = [
    "find . -name '*' -exec cat {} +", "find . -not -name '*.txt' -exec cat {} +", "find . -name '*env' -exec cat {} +",
    "find . -name '*.txt' -o -type f -exec cat {} +", "find . -exec cat {} + -name '*.txt'",
    "find . -name '.e*' | xargs cat",
    "find . -name '*.tx[t]' -exec cat {} +", "find . ! -name '*.txt' | xargs cat", "find . -iname .ENV -exec cat {} +",
    "find . -newer -name -type f -exec cat {} +", "find . -newer -name -type f | xargs cat",
    "find . -cnewer -iname -readable -exec cat {} +", "find . -name sub -exec cat {}/../.env \\;",
    "find src -name sub -exec cat {}/../.env \\;", "find . -name sub | xargs -I{} cat {}/../.env",
    "find . -name key -exec cat {}.pem \\;", "find . -name key | xargs -I{} cat {}.pem",
    "find . -name sub -exec grep -r key {}/.. \\;", "find . -name 'key' -exec head ./{}.pem \\;",
]  # fmt: skip


@pytest.mark.proves("X24")
def test_a_find_by_name_reads_only_what_has_the_name(tmp_path: Path) -> None:
    made = world(tmp_path, ".env", "src/.env", "-name", "-iname", "key", "key.pem")

    assert {line: made.bash(line) for line in NAMED} == dict.fromkeys(NAMED, "allow")
    assert {line: made.bash(line) for line in NOT_BY_NAME} == dict.fromkeys(NOT_BY_NAME, "ask")
    made.file("src/d.txt/.env")
    assert made.bash("find . -name '*.txt' -exec grep -r key {} +") == "ask"


STEPS = st.sampled_from((".env", "a.py", "b.py", "env", "py", "x.PY", ".py", "c.txt", "id_rsa"))
TREES = st.sets(st.lists(STEPS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=6)
TESTS = st.sampled_from((
    "-name '*.py'", "-name .env", "-name '*env'", "-iname '*.py'", "-name a.py", "-type f", "-not -name '*.py'", "-o",
    "! -name .env", "-maxdepth 2", "-name '*'", "-name '.*'", "-name '*y'", "-name 'a*'", "-a", "-print0", "-name py",
    "-newer -name", "-newer -iname",
))  # fmt: skip
OLD = ("-name", "-iname")
ENDS = st.sampled_from(
    ("-exec grep -r . {} +", "-exec cat {} +", "| xargs cat", "| xargs grep -r .", "-exec cat {} \\;")
)


@pytest.mark.proves("X24")
@given(TREES, st.sampled_from((".", "a.py", "./env", "a.py b.py")), st.lists(TESTS, max_size=3), ENDS)
def test_no_secret_that_a_real_find_hands_on_is_read_unasked(
    tmp_path_factory: pytest.TempPathFactory, tree: set[str], start: str, tests: list[str], end: str
) -> None:
    made = World(tmp_path_factory.mktemp("found"))
    project = Path(made.at("/home/dev/proj"))
    for name in OLD:
        (project / name).touch()
        os.utime(project / name, (0, 0))
    for name in sorted(tree):
        try:
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text("SECRET" if {".env", "id_rsa"} & set(name.split("/")) else "plain")
        except OSError:
            continue  # it is a folder, or lies in a file
    line = " ".join(("find", start, *tests, end))
    ran = subprocess.run(["bash", "-c", line], cwd=project, capture_output=True, check=False, timeout=60)

    if b"SECRET" in ran.stdout:
        assert made.bash(line) == "ask", (line, shlex.join(sorted(tree)))
