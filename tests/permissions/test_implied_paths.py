"""A command is also judged by files that it does not name: what is in its folders, and what it puts into them."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.files import paths
from tests.permissions.world import World

DENIED = [
    "rm -rf src", "rm -rf src/", "rm -r s?c", "rm -rf src/./generated/../../src", "mv src foo", "mv -T src foo",
    "chmod -R 777 src", "cp a.py src/generated", "cp a.py link", "cp a.txt sub", "cp a.txt sub/", "cp -t sub a.txt",
    "mv a.txt sub/.", "mv -t sub a.txt", "ln -f a.txt sub", "install a.txt sub", "cp -r tree/. .", "cp -r tree/sub .",
    "cp -R keys out", "mv keys out", "find . -exec rm -r src \\;", "bash -c 'cd src && cp -r ../tree/sub ..'",
    "cd sub && cp ../a.txt .", "tee src/generated/x < a.txt", "sed -i.txt s/a/b/ sub/a", "cp -S .txt b.txt sub/a",
    "mkdir keep && cp a.txt keep", "mkdir keep; mv a.txt keep/", "mkdir -p keep; ln a.txt -t keep",
    "mkdir x; cp -r tree/sub x",
    "for d in keep; do mkdir $d; cp a.txt $d; done",
]  # fmt: skip
ASKED = [
    "cp -r evil/. .",
    "cp -r evil .",
    "cp evil/.bashrc .",
    "mv evil new",
    "cp -r evil/. outward",
    "cp b.txt out-dir",
    "sed -i.json s/a/b/ .mcp",
    "sed -i .json s/a/b/ .mcp",
    "sed --in-place=.json s/a/b/ .mcp",
    "sed -n -i.json p .mcp",
    "sed -i.toml s/a/b/ a.txt mise",
    "cp -S .json a.txt .mcp",
    "cp -bS .json a.txt .mcp",
    "cp -S.json a.txt .mcp",
    "cp --suf=.json a.txt .mcp",
    "mv --suffix .json a.txt .mcp",
    "cp -S .json evil/.mcp .",
    "mv -S rc a.txt .bash",
    "cp -S.json -S.1 -S.2 -S.3 -S.4 -S.json a.txt .mcp",
    "mkdir -p x/y && cp -r evil/.husky x/y",
    "mkdir new && cp -r evil new",
]
ALLOWED = ["rm -rf tree", "rm -rf evil", "mv tree new", "cp a.txt tree", "cp -r tree new", "mkdir src/new", "touch src"]
ALLOWED += ["mkdir new && cp a.txt new", "cp a.txt keep", "mkdir new; cp -r tree new; mv a.py new/"]
ALLOWED += ["sed -i.bak s/a/b/ a.py", "cp -S .old a.py b.txt", "sed -i -e s,a.json,b, .mcp", "mv -b a.py new"]


def project(tmp_path: Path, mode: str) -> World:
    denied = [
        "Edit(./keep/a.txt)",
        "Edit(./x/sub/a.txt)",
        "Edit(src/generated/**)",
        "Edit(./sub/a.txt)",
        "Read(keys/private)",
    ]
    world = World(tmp_path, mode=mode, rules={"allow": ["Bash"] if mode == "default" else [], "deny": denied})
    for name in ("src/generated/a.py", "sub/a.txt", "a.txt", "b.txt", "a.py", "tree/sub/a.txt", "keys/private"):
        world.file(name)
    for name in ("evil/.husky/hook", "evil/.bashrc", "out-dir/other"):
        world.file(name)
    world.link("link", "/home/dev/proj/src/generated")
    world.link("out-dir/b.txt", "/home/dev/elsewhere")
    return world


@pytest.mark.proves("R3")
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
@pytest.mark.parametrize("command", DENIED)
def test_a_deny_rule_covers_what_a_command_does_through_a_folder(command: str, mode: str, tmp_path: Path) -> None:
    assert project(tmp_path, mode).bash(command) == "deny"


@pytest.mark.parametrize("command", ASKED)
def test_what_is_protected_where_it_would_be_put_is_asked_for(command: str, tmp_path: Path) -> None:
    assert project(tmp_path, "acceptEdits").bash(command) == "ask"


@pytest.mark.parametrize("command", ALLOWED)
def test_folders_without_such_files_are_edited_as_the_mode_says(command: str, tmp_path: Path) -> None:
    assert project(tmp_path, "acceptEdits").bash(command) == "allow"


def test_a_folder_with_too_much_in_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = project(tmp_path, "acceptEdits")
    monkeypatch.setattr(paths, "MAX_BENEATH", 1)

    assert world.bash("rm -rf tree") == "ask"


NAMES = st.lists(st.sampled_from(["a", "b", "c d", "*", "-x", "é"]), min_size=2, max_size=5)


@pytest.mark.proves("R3")
@given(NAMES, st.sampled_from(["rm -rf {}", "mv {} new", "chmod -R 0 {}"]))
def test_no_folder_above_a_denied_file_is_taken_away(names: list[str], command: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = "/".join(["top", *names])
        rule = f"Edit(./{path.replace('*', chr(92) + '*')})"
        world = World(Path(folder), rules={"deny": [rule], "allow": ["Bash"]})
        world.file(path)

        for depth in range(1, len(names) + 1):
            above = "/".join(["top", *names][:depth])
            assert world.bash(command.format(f"'{above}'")) == "deny"
