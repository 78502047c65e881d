"""Which files searches leave out."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handrail.permissions.hidden_files import hidden_file_check
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.shell.secrets import secret
from tests.permissions.world import PROJECT, World


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        ("src/app.py", False),
        ("src/secret.txt", True),
        ("deep/down/SECRET.txt", True),
        ("private/a/b.txt", True),
        ("drafts/a.md", True),
        (".env", True),
        (".env.example", False),
        (".ssh/config", True),
        ("keys/server.pem", False),
        ("other/server.pem", True),
    ],
)
def test_what_could_not_be_read_without_a_question_is_left_out(path: str, left_out: bool, tmp_path: Path) -> None:
    rules = {"deny": ["Read(secret.txt)", "Read(private/)"], "ask": ["Read(drafts/**)"], "allow": ["Read(keys/**)"]}
    world = World(tmp_path, rules=rules)

    assert hidden_file_check(world.policy)(world.at(f"{PROJECT}/{path}")) == left_out


def test_bypassing_shows_secrets_but_not_what_is_denied(tmp_path: Path) -> None:
    world = World(tmp_path, mode="bypassPermissions", rules={"deny": ["Read(a.txt)"]})
    left_out = hidden_file_check(world.policy)

    assert left_out(world.at(f"{PROJECT}/a.txt"))
    assert not left_out(world.at(f"{PROJECT}/.env"))


@pytest.mark.parametrize("path", ["a.py", ".env", "src/x.key", "private/z", "link.txt"])
def test_searches_hide_what_reading_would_not_allow(path: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": ["Read(private/**)"]})
    world.file(path)
    real = world.at(f"{PROJECT}/{path}")

    assert hidden_file_check(world.policy)(real) == (world.says("Read", {"file_path": real}) != "allow")


NAMES = (
    *("a.py", "A.PY", "b.txt", ".env", "x.key", "credentials", "ä.py", "a\u0308.py", "\u212a.py", "src", "lib", "deep"),
    *(".ssh", "weird[1].txt"),
)
SPECS = (
    *("a.py", "*.py", "*.txt", "src/**", "src/", "src/*", "**/deep/**", "lib/*.py", "/src/a.py", "~/proj/lib", "*"),
    *("b*", "//home/dev/proj/**", "./a.py", "../x", "SRC/B.TXT", "ä.py", "k.py", r"weird\[1\].txt", "*.d/a.py"),
)


@given(
    rules=st.dictionaries(
        st.sampled_from(["deny", "ask", "allow"]), st.lists(st.sampled_from(SPECS).map("Read({})".format), max_size=3)
    ),
    paths=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join), min_size=1, max_size=6),
    top=st.sampled_from([PROJECT, "/home/dev", "/srv", ""]),
)
@example(rules={"deny": ["Read(ä.py)"]}, paths=["lib/a\u0308.py"], top=PROJECT)
@example(rules={"ask": ["Read(k.py)"]}, paths=["lib/\u212a.py"], top=PROJECT)
@settings(max_examples=400)
def test_the_quick_check_by_folder_says_what_the_rules_say_of_each_path(
    rules: dict[str, list[str]], paths: list[str], top: str
) -> None:
    policy = Policy.empty(PROJECT, "/home/dev")
    for kind, texts in rules.items():
        policy = policy.adding(Behaviour(kind), texts, RuleSource("project", folder=PROJECT))
    left_out = hidden_file_check(policy)

    for path in (f"{top}/{name}" for name in paths):
        objects = policy.index[Behaviour.DENY].read.find(path) or policy.index[Behaviour.ASK].read.find(path)
        allowed = policy.index[Behaviour.ALLOW].read.find(path)
        assert left_out(path) == bool(objects or (secret(path) and not allowed)), path
