"""A pattern in a command stands for the files that bash matches, and rules and questions are about those."""

from pathlib import Path

import pytest

from tests.builtin.bash.session import Session
from tests.permissions.world import World

# Each means .env, in bash and not in the dialect of Python's glob.
NAMES_OF_A_SECRET = [
    ".e[n]v", ".[e]nv", ".[[:alpha:]]nv", ".[[:lower:]]n*", ".[^x]nv", ".[^[:digit:]]nv", ".[\\e]nv", ".['e']nv",
    '.["e"x]nv', ".[[=e=]]nv", ".[[.e.]]nv", ".[[=e=]n]nv", ".[[:word:]]nv", ".[a-z]nv", ".[!x]nv", ".[]e]nv",
    ".[[e]nv", ".e?v", ".en*", "'.e'*", '".e"?v', ".{e,x}n?", "./.[^x]nv", '"$PWD"/.[^x]nv', ".[e'-'x]nv", ".[\\]e]nv",
]  # fmt: skip
HARMLESS = [
    "*.txt", "[ab].txt", "[a-c].txt", "[[:lower:]].txt", "?.txt", "[!.]*.txt", "s*/*.py", "'[d]'/*.py", "[s]rc/*",
    "{a,b}.t?t", "*.none", "*", "é?", "./*.txt", "\"$PWD\"/*.txt",
]  # fmt: skip


def world(folder: Path) -> World:
    made = World(folder)
    for name in (".env", "a.txt", "b.txt", "src/a.py", "[d]/x.py", "éa"):
        made.file(name, "SECRET")
    return made


@pytest.mark.proves("X12", "X2")
@pytest.mark.parametrize("word", NAMES_OF_A_SECRET)
def test_a_pattern_for_a_secret_is_asked_about_and_a_deny_rule_covers_it(word: str, tmp_path: Path) -> None:
    made = world(tmp_path)

    assert made.bash(f"cat {word}") == "ask"
    assert made.bash(f'for f in {word}; do cat "$f"; done') == "ask"

    made.rules = {"deny": ["Read(.env)"], "allow": ["Bash"]}
    assert made.bash(f"cat {word}") == "deny"
    assert made.bash(f"cat {word} > a.txt") == "deny"


@pytest.mark.proves("X12")
@pytest.mark.parametrize("word", HARMLESS)
def test_a_pattern_for_ordinary_files_passes_beside_a_secret(word: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(f"cat {word}") == "allow"


@pytest.mark.proves("X12")
@pytest.mark.parametrize(
    "command",
    [
        "cat l[[:alpha:]]nk/x", "cat l[^x]nk/x", "cat '[d]'/l?nk", "cat '[d]'/l[^x]nk", "ls [[]d]/l*", "cat [\\[]d]/l*",
        "cat {~,x}/notes", "head ?ink/x",
    ],
)  # fmt: skip
def test_a_pattern_that_leads_out_through_a_link_is_asked_about(command: str, tmp_path: Path) -> None:
    made = world(tmp_path)
    made.file("/home/dev/elsewhere/x")
    made.file("/home/dev/notes")
    made.link("link", "/home/dev/elsewhere")
    made.link("[d]/link", "/home/dev/elsewhere/x")

    assert made.bash(command) == "ask"


@pytest.mark.proves("X12")
@pytest.mark.parametrize("word", ["*.txt", "[a].txt", "l[^x]nk", "l*"])
def test_a_working_folder_with_brackets_in_its_name_is_taken_literally(word: str, tmp_path: Path) -> None:
    made = World(tmp_path, cwd="/home/dev/[p]*", working_dirs=("/home/dev/[p]*",))
    made.file("/home/dev/[p]*/a.txt")
    made.link("/home/dev/[p]*/link", "/etc/passwd")

    assert made.bash(f"cat {word}") == ("allow" if word.endswith(".txt") else "ask")


@pytest.mark.proves("X12")
@pytest.mark.parametrize(
    ("word", "says"),
    [(".[g]it/config", "ask"), (".[^x]it/config", "ask"), (".[[:alpha:]]it/co*", "ask"), ("a.[^x]xt", "allow")],
)
def test_a_pattern_for_a_protected_file_is_asked_about_where_edits_are_accepted(
    word: str, says: str, tmp_path: Path
) -> None:
    made = world(tmp_path)
    made.mode = "acceptEdits"
    made.file(".git/config")

    assert made.bash(f"cp b.txt {word}") == says


@pytest.mark.proves("X12", "X11")
@pytest.mark.parametrize("word", ["[d]ev", "[^x]ev", "[[:alpha:]]ev", "d[[=e=]]v", "dev/[[=a=]]*", "D[[:lower:]]v"])
def test_removing_the_home_folder_by_a_pattern_is_asked_about(word: str, tmp_path: Path) -> None:
    made = world(tmp_path)
    made.rules = {"allow": ["Bash"]}

    assert made.says("Bash", {"command": f"rm -rf {made.root}/home/{word}"}) == "ask"
    assert made.says("Bash", {"command": f"rm -rf {made.root}/home/x{word}"}) == "allow"


@pytest.mark.proves("X12")
@pytest.mark.parametrize(
    "line", ["echo x > a.t*", "echo x >> [^b].txt", "> a.[[:alpha:]]xt", "cat b.txt > {a,}.txt", ": >| ?.txt"]
)
def test_a_redirection_to_a_pattern_writes_the_file_that_it_matches(line: str, tmp_path: Path) -> None:
    made = world(tmp_path)
    made.rules = {"deny": ["Edit(a.txt)"], "allow": ["Bash"]}

    assert made.bash(line) == "deny"


@pytest.mark.proves("X12")
def test_a_new_name_made_of_names_that_a_loop_finds_is_not_written_unasked(tmp_path: Path) -> None:
    made = world(tmp_path)
    made.mode, made.rules = "acceptEdits", {"deny": ["Edit(a.txt.bak)"]}

    assert made.bash('for f in ./*.txt; do cat b.txt > "$f.bak"; done') == "ask"
    assert made.bash('for f in ./*.txt; do cat b.txt > "$f"; done') == "allow"


@pytest.mark.anyio
@pytest.mark.proves("X12")
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("word", [".[[:alpha:]]nv", ".[^x]nv", "?secret.pem", "??secret.pem", "'[d]'/l[^x]nk"])
async def test_no_call_shows_a_secret_that_a_pattern_matches(word: str, locale: str, tmp_path: Path) -> None:
    session = Session(tmp_path, env={"LC_ALL": locale})
    (session.project / "[d]").mkdir()
    (session.home / "notes").write_text("SECRET")
    (session.project / "[d]" / "link").symlink_to(session.home / "notes")
    for name in (".env", "ésecret.pem"):
        (session.project / name).write_text("SECRET")

    outcome = await session.bash(f"cat {word}", session.rules())

    assert "SECRET" not in outcome.result.text
