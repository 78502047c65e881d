"""Links that a command line makes, moves or copies before another of its commands goes through them."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.permissions.world import PROJECT, World

# fmt: off
MADE = (
    "ln -s .git/config z && cp a z", "ln .git/config z && cp a z", "link .git/config z; cp a z",
    "ln -s .git z && cp a z/config", "ln -s ../.git/config src/z && cp a src/z", "ln -sr .git/config src/z; cp a src/z",
    "cd src && ln -s ../.git/config z && cp ../a z", "ln -s .git y; ln -s y z; cp a z/config",
    "ln -s ../.git/config src; cp a src/config", "ln -st src ../.git/config; cp a src/config",
    "ln -s /etc/hostname z && cat z", "ln -s .. z; cat z/other", "ln -s .env z; cat z",
    "ln -s .git z; sed -i s/a/b/ z/config", "ln -s /etc/hostname; cat hostname",
    "cd src; ln -s ../.git/config; cp ../a config",
)
MOVED = (
    "mv deep/er/links new && cp a new/out", "cp -r deep/er/links new && cp a new/out",
    "mv deep/er/links new; cat new/out", "cp -a deep/er/links new; touch new/out", "mv deep/er/links/out out; cp a out",
    "cp -P deep/er/links/out out; cat out", "mv deep/er new; rm -r new/links/far/x",
    "mkdir new; mv deep/er/links/* new; cp a new/out",
    "mv deep/er/links src && cp a src/links/out", "cd deep && mv er/links ../new && cp ../a ../new/out",
)
ORDINARY = (
    "mv deep new && cp a new/plain", "cp -r tree new && cat new/inner", "mv tree new; touch new/inner",
    "cp -r src new; cp a new/b", "mv deep/er/links new", "cp -r deep/er/links new", "mkdir new && cp a new/",
    "mv a b; cat b",
    "cp a b && sed -i s/a/b/ b", "ln -s out z && cat a", "ln -s ../out src && cat src/b", "ln -s deep/plain; cat a",
    "ln -sf out z; cp a z",
)
# fmt: on


def world(folder: Path, *rules: str) -> World:
    found = World(folder, rules={"allow": rules}, mode="acceptEdits")
    for name in (".git/config", "a", "out", "deep/plain", "tree/file", ".env"):
        found.file(name)
    links = Path(found.at(PROJECT), "deep", "er", "links")
    links.mkdir(parents=True)
    (links / "out").symlink_to("../../../out")
    (links / "far").symlink_to("../../../src")
    Path(found.at(PROJECT), "tree", "inner").symlink_to("file")
    return found


@pytest.mark.parametrize("command", MADE)
def test_a_rule_for_links_opens_nothing_that_they_lead_to(command: str, tmp_path: Path) -> None:
    assert world(tmp_path, "Bash(ln *)", "Bash(link *)").bash(command) == "ask"


@pytest.mark.parametrize("command", MOVED)
def test_a_link_is_followed_from_where_a_line_puts_it(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command) == "ask"


@pytest.mark.parametrize("command", ORDINARY)
def test_what_leads_nowhere_else_is_edited_as_the_mode_says(command: str, tmp_path: Path) -> None:
    assert world(tmp_path, "Bash(ln *)").bash(command) == "allow"


@pytest.mark.proves("R3")
def test_a_deny_rule_holds_for_a_link_that_the_same_line_makes(tmp_path: Path) -> None:
    found = World(tmp_path, rules={"allow": ["Bash"], "deny": ["Read(./secrets/**)"]})
    found.file("secrets/key")

    assert found.bash("ln -s ../secrets/key src/z; cat src/z") == "deny"


FOLDERS = st.lists(st.sampled_from(["x", "y"]), max_size=3).map("/".join)
TARGETS = st.lists(st.sampled_from(["..", "x", "kept", "."]), min_size=1, max_size=5).map("/".join)


@given(FOLDERS, FOLDERS, TARGETS, st.booleans())
def test_what_runs_unasked_changes_no_file_outside(old: str, new: str, text: str, folder: bool) -> None:
    with tempfile.TemporaryDirectory() as top:
        found = World(Path(top), mode="acceptEdits")
        root = Path(found.at(PROJECT))
        (root / old / "moved").mkdir(parents=True)
        (root / "new" / new).mkdir(parents=True)
        (root / old / "moved" / "link").symlink_to(text)
        moved = os.path.normpath(f"./{old}/moved" if folder else f"./{old}/moved/link")
        there = os.path.normpath(f"new/{new}/there")
        verdict = found.bash(f"mv {moved} {there} && cp a {there}/{'link' if folder else ''}")

        (root / moved).rename(root / there)
        written = os.path.realpath(root / there / "link" if folder else root / there)

        assert verdict == "ask" or Path(written).is_relative_to(root)
