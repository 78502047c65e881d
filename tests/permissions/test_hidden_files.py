"""Which files searches leave out."""

from pathlib import Path

import pytest

from handrail.permissions.hidden_files import hidden_file_check
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
