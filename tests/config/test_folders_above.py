"""Settings of the folders from the repository's root down to the working folder: what counts, and what needs trust."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.config.places import folders_above, places_for
from handrail.config.trust import TrustStore
from handrail.extensions.places import config_folders
from handrail.permissions.rules import Behaviour
from handrail.processes.sandbox.settings import Filesystem, read_settings
from handrail.session.models.options import credential
from handrail.session.settings.session_settings import SessionSettings
from tests.config.world import World

ROOT, MIDDLE, NEAR = "project", "project/a", "project/a/b"
TEXT = "7 characters, sha256 17a4a494b2bc4969"
"""The text of the command, which is !`evil`."""


@pytest.fixture
def nested(tmp_path: Path) -> World:
    """A world whose working folder is two levels below the root of its repository."""
    world = World(tmp_path)
    (world.root / NEAR).mkdir(parents=True)
    (world.root / ROOT / ".git").mkdir()
    above = tuple(str(world.root / name) for name in (MIDDLE, ROOT))
    world.places = replace(world.places, cwd=str(world.root / NEAR), above=above)
    return world


def test_the_folders_end_at_the_nearest_repository(nested: World) -> None:
    near, root = nested.root / NEAR, nested.root / ROOT

    assert folders_above(str(near)) == (str(nested.root / MIDDLE), str(root))
    assert folders_above(str(root)) == ()
    (nested.root / MIDDLE / ".git").write_text("gitdir: elsewhere")  # a worktree or a submodule
    assert folders_above(str(near)) == (str(nested.root / MIDDLE),)
    assert folders_above(str(nested.root / "home")) == ()  # in no repository


@pytest.mark.proves("R9")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(
    ("git", "cwd", "counts"),
    [
        pytest.param(1234, 0, False, id="of somebody else, as in /tmp"),
        pytest.param(1234, 1234, True, id="of the owner of the working folder, as in a container"),
        pytest.param(0, 1234, True, id="of root"),
    ],
)
def test_a_repository_that_others_made_around_the_working_folder_brings_nothing(
    git: int, cwd: int, counts: bool, nested: World
) -> None:
    near, root = nested.root / NEAR, nested.root / ROOT
    nested.write(f"{ROOT}/.claude/settings.json", {"permissions": {"allow": ["Bash(evil)"]}})
    nested.write(f"{ROOT}/.claude/commands/go.md", "!`evil`")
    os.chown(root / ".git", git, git)
    os.chown(near, cwd, cwd)
    nested.places = places_for(near, nested.env, nested.places.state)

    found = nested.gather(trust=True)

    assert bool(nested.places.above) is counts
    assert [item.value for item in found.items] == (["Bash(evil)", ["evil"], TEXT] if counts else [])
    assert config_folders(near, nested.env, ("project",)) == () or counts


def test_a_repository_in_the_home_folder_does_not_count_the_users_own_files_twice(nested: World) -> None:
    home = nested.root / "home"
    (home / ".git").mkdir()
    (home / "work").mkdir()

    files = places_for(home / "work", nested.env, nested.places.state).files()

    assert [file.shown for file in files if file.path.parent.parent == home] == [
        "~/.handrail/settings.json",
        "~/.claude/settings.json",
    ]


def test_the_nearest_file_wins_and_rules_pool(nested: World) -> None:
    for folder, rule in ((ROOT, "Glob"), (MIDDLE, "Grep"), (NEAR, "Write")):
        content = {"permissions": {"deny": [rule]}, "cleanupPeriodDays": len(folder)}
        nested.write(f"{folder}/.claude/settings.json", content)
    nested.write(f"{MIDDLE}/.claude/settings.local.json", {"cleanupPeriodDays": 2})
    nested.write(f"{NEAR}/.handrail/settings.json", {"cleanupPeriodDays": 1})
    nested.trust()

    found = nested.gather()

    assert [file.shown for file in found.settings_files] == [
        ".handrail/settings.json",
        ".claude/settings.json",
        "../.claude/settings.local.json",
        "../.claude/settings.json",
        "../../.claude/settings.json",
    ]
    assert found.get("cleanupPeriodDays") == 1
    assert found.get("permissions", "deny") == ["Write", "Grep", "Glob"]


STATES = st.fixed_dictionaries(dict.fromkeys((ROOT, MIDDLE, NEAR), st.sampled_from(("absent", "brought", "trusted"))))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=STATES, order=st.permutations((ROOT, MIDDLE, NEAR)))
def test_only_the_folder_that_was_trusted_widens_wherever_the_session_is(
    states: dict[str, str], order: list[str], nested: World
) -> None:
    store = TrustStore(nested.places.state)
    for folder in order:
        path = nested.root / folder
        store.revoke(str(path))
        (path / ".claude" / "settings.json").unlink(missing_ok=True)
        if states[folder] != "absent":
            nested.write(f"{folder}/.claude/settings.json", {"permissions": {"allow": [f"Bash({Path(folder).name})"]}})
    for folder in order:
        if states[folder] == "trusted":
            path = nested.root / folder
            store.trust(str(path), [item for item in nested.gather().items if item.folder == str(path)])

    policy = SessionSettings(nested.places, nested.env).policy()

    allowed = {rule.text for rule in policy.rules if rule.behaviour is Behaviour.ALLOW}
    assert allowed == {f"Bash({Path(folder).name})" for folder, state in states.items() if state == "trusted"}


def test_trusting_a_folder_trusts_what_counts_in_it_and_no_more(nested: World) -> None:
    root, near = str(nested.root / ROOT), str(nested.root / NEAR)
    nested.write(f"{ROOT}/.claude/settings.json", {"permissions": {"allow": ["Bash(make)"]}})
    nested.write(f"{NEAR}/.claude/settings.json", {"permissions": {"allow": ["Bash(ls)"]}})
    nested.trust()
    assert nested.gather().trust_by_folder == {near: "trusted", root: "trusted"}

    nested.write(f"{ROOT}/.claude/settings.json", {"permissions": {"allow": ["Bash(make)", "Bash(evil)"]}})

    found = nested.gather()
    assert found.trust_by_folder == {near: "trusted", root: "changed"}
    assert found.get("permissions", "allow") == ["Bash(ls)"]
    assert [(item.folder, item.value) for item in found.ignored] == [(root, "Bash(make)"), (root, "Bash(evil)")]


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("Read(secrets/**)", "project/secrets/k", True),
        ("Read(./secrets/**)", "project/secrets/k", True),
        ("Read(/secrets/**)", "project/secrets/k", True),
        ("Read(/secrets/**)", "project/a/b/secrets/k", False),
        ("Read(secrets/**)", "project/a/b/secrets/k", True),
    ],
)
def test_patterns_of_the_root_mean_below_it_what_they_mean_at_the_root(
    rule: str, path: str, matches: bool, nested: World
) -> None:
    nested.write(f"{ROOT}/.claude/settings.json", {"permissions": {"deny": [rule], "allow": ["Edit(src/**)"]}})
    nested.trust()

    policy = SessionSettings(nested.places, nested.env).policy()

    assert bool(policy.index[Behaviour.DENY].read.find(str(nested.root / path))) is matches
    allowed = policy.index[Behaviour.ALLOW].edit
    assert allowed.find(str(nested.root / ROOT / "src/x"))
    assert not allowed.find(str(nested.root / NEAR / "src/x"))


@pytest.mark.proves("R9")
@pytest.mark.parametrize(
    ("approval", "file", "used"),
    [
        pytest.param({"enableAllProjectMcpServers": True}, f"{ROOT}/.claude/settings.json", [], id="all, by the root"),
        pytest.param({"enabledMcpjsonServers": ["db"]}, f"{MIDDLE}/.handrail/settings.local.json", [], id="by name"),
        pytest.param({"enabledMcpjsonServers": ["db"]}, "user", ["db"], id="by the user"),
    ],
)
def test_what_a_trusted_folder_says_of_its_servers_approves_none_of_a_folder_inside_it(
    approval: dict[str, object], file: str, used: list[str], nested: World
) -> None:
    nested.write(file, approval)
    nested.trust()
    nested.write(f"{NEAR}/.mcp.json", {"mcpServers": {"db": {"command": "./evil"}}})

    found = nested.gather()
    nested.write(f"{ROOT}/.claude/settings.local.json", {"disabledMcpjsonServers": ["db"]})

    assert [*found.servers] == used
    assert [item.path for item in found.ignored if item.path[0] == "mcpServers" and used] == []
    assert [*nested.gather().servers] == []  # a refusal counts from everywhere


@pytest.mark.proves("R9")
@pytest.mark.parametrize(
    ("link", "target"),
    [
        pytest.param(".claude/commands/go.md", f"{ROOT}/docs/commands/go.md", id="a file"),
        pytest.param(".claude", f"{ROOT}/docs", id="the folder of a program"),
    ],
)
def test_a_link_in_a_folder_that_is_not_trusted_does_not_make_its_command_one_of_the_root(
    link: str, target: str, nested: World
) -> None:
    near, root = nested.root / NEAR, str(nested.root / ROOT)
    nested.write(f"{ROOT}/.claude/settings.json", {"permissions": {"allow": ["Bash(make)"]}})
    nested.trust()
    nested.write(f"{ROOT}/docs/commands/go.md", "!`evil`")
    (near / link).parent.mkdir(parents=True, exist_ok=True)
    (near / link).symlink_to(nested.root / target)

    found = nested.gather()

    assert [(item.folder, item.value) for item in found.ignored] == [(str(near), ["evil"]), (str(near), TEXT)]
    assert found.trust_by_folder[root] == "trusted"


@pytest.mark.proves("R9")
def test_the_key_helper_of_the_root_runs_in_the_root(nested: World) -> None:
    for folder, word in ((ROOT, "root"), (NEAR, "near")):
        helper = nested.write(f"{folder}/key.sh", f"#!/bin/sh\ntouch {nested.root}/{word}\necho {word}\n")
        helper.chmod(0o755)
    nested.write(f"{ROOT}/.claude/settings.json", {"apiKeyHelper": "./key.sh"})
    nested.trust()

    assert credential(nested.load()) == "root"
    assert not (nested.root / "near").exists()


def test_a_folder_that_the_root_adds_is_relative_to_the_root(nested: World) -> None:
    (nested.root / ROOT / "shared").mkdir()
    nested.write(f"{ROOT}/.claude/settings.json", {"permissions": {"additionalDirectories": ["shared"]}})
    nested.trust()

    assert nested.load().folders == (nested.places.cwd, str(nested.root / ROOT / "shared"))


def test_paths_of_the_root_for_the_sandbox_are_relative_to_the_root(nested: World) -> None:
    root = nested.root / ROOT
    files = {"denyRead": ["secrets", "./keys/**", "~/notes", "/srv"], "allowWrite": ["build"]}
    nested.write(f"{ROOT}/.claude/settings.json", {"sandbox": {"filesystem": files}})
    nested.write(f"{NEAR}/.claude/settings.json", {"sandbox": {"filesystem": {"denyRead": ["own"]}}})

    def read() -> Filesystem:
        return read_settings(nested.load().sandbox, folder=nested.places.cwd, home="/home/me").filesystem

    denied = (f"{nested.places.cwd}/own", f"{root}/secrets", f"{root}/keys", "/home/me/notes", "/srv")
    assert read() == Filesystem(deny_read=denied)
    nested.trust()
    assert read() == Filesystem(deny_read=denied, allow_write=(f"{root}/build",))


def test_paths_for_the_sandbox_that_come_with_a_root_are_relative_to_it(nested: World) -> None:
    given = '{"sandbox": {"filesystem": {"denyRead": ["secrets"]}}}'
    for root, expected in (("", nested.places.cwd), (str(nested.root / ROOT), str(nested.root / ROOT))):
        sandbox = nested.load(settings=given, root=root).sandbox
        found = read_settings(sandbox, folder=nested.places.cwd, home="/home/me").filesystem
        assert found == Filesystem(deny_read=(f"{expected}/secrets",))


@pytest.mark.parametrize(
    ("repository", "cwd", "root", "above"),
    [
        pytest.param("", "r/a/b", "r", ("r/a", "r"), id="in no repository"),
        pytest.param("r/a", "r/a/b", "r", ("r/a", "r"), id="across the border of a repository"),
        pytest.param("r/a/b", "r/a/b", "r", ("r/a", "r"), id="at the root of a repository"),
        pytest.param(".", "r/a/b", "r", ("r/a", "r", "."), id="in a repository that is bigger"),
        pytest.param("", "r", "r", (), id="the root itself"),
        pytest.param("", "r2/a", "r", (), id="a folder with a name that begins alike"),
    ],
)
def test_the_folders_reach_up_to_a_given_root(
    tmp_path: Path, repository: str, cwd: str, root: str, above: tuple[str, ...]
) -> None:
    top = Path(os.path.realpath(tmp_path))
    (top / cwd).mkdir(parents=True)
    if repository:
        (top / repository / ".git").mkdir()
    assert folders_above(str(top / cwd), str(top / root)) == tuple(str(top / name) for name in above)


def test_a_changed_file_of_the_root_counts_in_a_running_session(nested: World) -> None:
    told: list[str] = []
    live = nested.live(told)
    assert not live.policy().denies_tool("Glob")
    nested.write(f"{ROOT}/.handrail/settings.json", {"permissions": {"deny": ["Glob", "bash"]}})

    assert live.policy().denies_tool("Glob")
    assert [note for note in told if "names are case-sensitive" in note]


def test_what_the_start_found_is_kept_by_content(nested: World) -> None:
    def notes() -> list[str]:
        told: list[str] = []
        nested.live(told).check_rules(keep=True)
        return told

    def kept() -> list[tuple[str, int]]:
        return [(str(file), file.stat().st_ino) for file in (nested.root / "state" / "lint").glob("*")]

    nested.write(f"{ROOT}/.claude/settings.json", {"permissions": {"deny": ["bash"]}})
    first, before = notes(), kept()

    assert len(first) == len(before) == 1
    assert (notes(), kept()) == (first, before)
    nested.write(f"{ROOT}/.claude/settings.json", {"permissions": {"deny": ["Bash"]}})
    assert notes() == []
