"""What counts in a folder: order of sources, policy, broken files, and nothing that widens by accident."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.config.places import chosen_sources, places_for
from handrail.errors import SettingsError
from tests.config.world import World

ORDER = ["policy", "policy.claude", "flag", "local", "local.claude", "project", "project.claude", "user", "user.claude"]


@pytest.mark.proves("G19", "G20")
@pytest.mark.parametrize("highest", range(len(ORDER)), ids=ORDER)
def test_the_highest_source_that_sets_a_value_wins(world: World, highest: int) -> None:
    for name in ORDER[highest:]:
        if name != "flag":
            world.write(name, {"model": name, "env": {name: name}})
    flag = json.dumps({"model": "flag", "env": {"flag": "flag"}}) if "flag" in ORDER[highest:] else ""

    settings = world.gather(settings=flag, trust=True)

    assert settings.get("model") == ORDER[highest]
    assert settings.get("env") == {name: name for name in ORDER[highest:]}


@pytest.mark.proves("G18", "G21")
def test_rules_of_all_sources_count_and_know_their_file_and_line(world: World) -> None:
    world.write("policy", '{"permissions": {\n"deny": ["WebSearch"]}}')
    world.write("project", '{"permissions": {"deny": [\n"Bash(rm *)",\n"Read(.env)"]}}')
    world.write("user.claude", '{"permissions": {"ask": ["Bash(git push *)"]}}')

    policy = world.live(disallowed=("Sleep Edit(/x/**)",)).policy()

    assert [(rule.text, str(rule.source)) for rule in policy.rules] == [
        ("WebSearch", f"policy {world.file('policy')}:2"),
        ("Bash(rm *)", "project settings .handrail/settings.json:2"),
        ("Read(.env)", "project settings .handrail/settings.json:3"),
        ("Bash(git push *)", "user settings ~/.claude/settings.json:1"),
        ("Sleep", "command line"),
        ("Edit(/x/**)", "command line"),
    ]
    assert [rule.source.folder for rule in policy.rules] == [
        str(world.root / "etc" / "handrail"),
        *[world.places.cwd] * 2,
        str(world.root / "home" / ".claude"),
        *[""] * 2,
    ]
    assert list(dict.fromkeys(rule.source.name for rule in policy.rules)) == ["policy", "project", "user", "cli"]


def test_bad_items_do_not_shift_the_lines_of_good_ones(world: World) -> None:
    world.write("user", '{"permissions": {"allow": [\n7,\n"Read",\nnull,\n"Glob"]}}')

    assert [(rule.text, rule.source.line) for rule in world.live().policy().rules] == [("Read", 3), ("Glob", 5)]


def test_sources_can_be_chosen_and_policy_and_flag_cannot_be_left_out(world: World) -> None:
    for name in ("policy", "project", "user"):
        world.write(name, {"permissions": {"deny": [name.title()]}})
    flag = '{"permissions": {"deny": ["Flag"]}}'

    def denied(text: str | None) -> list[str]:
        found: list[str] = world.gather(settings=flag, sources=chosen_sources(text)).get("permissions", "deny")
        return found

    assert denied(None) == ["Policy", "Flag", "Project", "User"]
    assert denied("user") == ["Policy", "Flag", "User"]
    assert denied("") == ["Policy", "Flag"]
    with pytest.raises(SettingsError, match="there is no source 'users'"):
        chosen_sources("users")


def test_drop_ins_of_policy_count_by_name_and_the_last_wins(world: World) -> None:
    world.write("policy", {"model": "base", "permissions": {"deny": ["A"]}})
    world.write("etc/handrail/managed-settings.d/20-b.json", {"model": "b", "permissions": {"deny": ["B"]}})
    world.write("etc/handrail/managed-settings.d/10-a.json", {"model": "a", "permissions": {"deny": ["C"]}})
    world.write("etc/handrail/managed-settings.d/.hidden.json", {"model": "hidden"})
    world.write("etc/handrail/managed-settings.d/readme.txt", "no JSON")

    settings = world.gather()

    assert settings.get("model") == "b"
    assert settings.get("permissions", "deny") == ["B", "C", "A"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        pytest.param("policy", "{", r"managed-settings\.json:1: ", id="broken JSON"),
        pytest.param("policy", {"permissions": {"deny": 5}}, "permissions.deny is 5", id="a wrong type"),
        pytest.param("policy", {"allowManagedHooksOnly": "yes"}, "must be true or false", id="a switch that is a text"),
        pytest.param("etc/handrail/managed-settings.d/x.json", "", "the file is empty", id="an empty drop-in"),
        pytest.param("policy.claude", "[]", "it must hold an object", id="a list in the other folder"),
    ],
)
def test_broken_policy_ends_the_program(world: World, name: str, content: Any, says: str) -> None:
    world.write(name, content)

    with pytest.raises(SettingsError, match=says) as caught:
        world.gather()

    assert "nothing runs without it" in str(caught.value)


def test_a_folder_in_place_of_the_policy_file_ends_the_program(world: World) -> None:
    world.file("policy").mkdir()

    with pytest.raises(SettingsError, match="this is a folder"):
        world.gather()


class Fixed:
    """A policy from elsewhere."""

    name = "https://policy.example"

    def __init__(self, text: bytes) -> None:
        self._text = text

    def read(self) -> bytes:
        return self._text


@pytest.mark.proves("G19")
def test_policy_may_come_from_any_other_source(world: World) -> None:
    world.write("policy", {"model": "file"})

    settings = world.gather(policies=(Fixed(b'{"model": "far", "permissions": {"deny": ["Bash"]}}'),))

    assert settings.get("model") == "far"
    assert settings.get_managed("permissions", "deny") == ["Bash"]
    with pytest.raises(SettingsError, match=r"https://policy\.example:1: "):
        world.gather(policies=(Fixed(b"<html>"),))


@pytest.mark.proves("G19")
def test_policy_may_come_from_a_program_that_policy_names(world: World) -> None:
    program = 'print(\'{"permissions": {"deny": ["Bash"]}}\')'
    world.write("policy", {"policyCommand": [sys.executable, "-c", program]})
    assert world.gather().get_managed("permissions", "deny") == ["Bash"]

    world.write("policy", {"policyCommand": [sys.executable, "-c", "import sys; sys.exit('no server')"]})
    with pytest.raises(SettingsError, match=r"exit code 1 \(no server\)"):
        world.gather()
    for nothing in (["/nonexistent/program"], []):
        world.write("policy", {"policyCommand": nothing})
        with pytest.raises(SettingsError, match="did not give a policy"):
            world.gather()


@pytest.mark.anyio
async def test_a_program_that_policy_names_is_also_run_where_settings_are_read_in_an_event_loop(world: World) -> None:
    world.write("policy", {"policyCommand": ["/bin/echo", '{"permissions": {"deny": ["Bash"]}}']})

    assert world.gather().get_managed("permissions", "deny") == ["Bash"]


def test_keys_of_policy_have_no_effect_elsewhere(world: World) -> None:
    marker = world.root / "ran"
    world.write("user", {"allowManagedHooksOnly": True, "policyCommand": ["touch", str(marker)]})

    settings = world.gather()

    assert settings.get("allowManagedHooksOnly") is None
    assert not marker.exists()
    assert [str(problem) for problem in settings.problems] == [
        "~/.handrail/settings.json:2: allowManagedHooksOnly works only in policy files and has no effect here.",
        "~/.handrail/settings.json:3: policyCommand works only in policy files and has no effect here.",
    ]


def test_a_flag_takes_a_file_or_an_object_and_fails_if_it_is_neither(world: World) -> None:
    world.write("project/more.json", '\ufeff{"model": "file"}')
    assert world.gather(settings="more.json").get("model") == "file"
    assert world.gather(settings=' {"model": "inline"} ').get("model") == "inline"

    with pytest.raises(SettingsError, match=r"there is no file 'none\.json'"):
        world.gather(settings="none.json")
    with pytest.raises(SettingsError, match="--settings:1: "):
        world.gather(settings="{nonsense}")


@pytest.mark.parametrize("broken", ["user", "project", "local", "user.claude"])
def test_while_a_file_is_broken_nothing_is_widened(world: World, broken: str) -> None:
    for name in ("user", "project"):
        world.write(
            name,
            {
                "permissions": {
                    "allow": ["Bash(ls *)"],
                    "deny": [f"Read({name})"],
                    "defaultMode": "acceptEdits",
                    "additionalDirectories": ["/"],
                },
                "sandbox": {"enabled": True},
            },
        )
    world.write(broken, '{"permissions": {"deny": ["Bash"]')

    live = world.live(trust=True, mode="acceptEdits", allowed=("Bash",))
    policy = live.policy()

    assert policy.mode == "default"
    assert policy.working_dirs == (world.places.cwd,)
    assert {rule.behaviour.value for rule in policy.rules} == {"deny"}
    assert {rule.text for rule in policy.rules} == {f"Read({name})" for name in ("user", "project") if name != broken}
    assert not live.loaded.sandbox.get("autoAllowBashIfSandboxed", True)
    assert any("Nothing in this file takes effect until it is repaired" in note for note in live.loaded.notes())


@pytest.mark.parametrize(
    "wrong",
    [
        {"sandbox": True},
        {"sandbox": {"autoAllowBashIfSandboxed": "false"}},
        {"permissions": {"disableBypassPermissionsMode": True}},
        {"permissions": {"defaultMode": "Plan", "allow": ["Edit"]}},
        {"allowedMcpServers": "db"},
    ],
    ids=str,
)
def test_a_wrong_value_that_would_restrict_widens_nothing_and_says_so(world: World, wrong: dict[str, Any]) -> None:
    world.write("user", {"permissions": {"allow": ["Bash"]}})
    world.write("project", wrong)

    live = world.live(mode="acceptEdits", allowed=("Edit",), allow_bypass=True)

    assert (live.policy().mode, live.policy().rules) == ("default", ())
    assert any("no allow rule of any file applies until it is corrected" in note for note in live.loaded.notes())


@pytest.mark.parametrize("link", ["/nonexistent/settings.json", "settings.json"], ids=["to nothing", "to itself"])
@pytest.mark.parametrize("source", ["project", "user"])
def test_the_only_settings_file_is_a_broken_link(world: World, source: str, link: str) -> None:
    world.file(source).symlink_to(link)

    live = world.live(mode="acceptEdits", allowed=("Bash",))

    assert (live.policy().mode, live.policy().rules) == ("default", ())
    assert any("link" in note for note in live.loaded.notes())


def test_the_only_settings_folder_is_a_link_to_nothing(world: World) -> None:
    folder = world.file("project").parent
    folder.rmdir()
    folder.symlink_to("/nonexistent")

    live = world.live(allowed=("Bash",))

    assert live.policy().rules == ()
    assert any("is a link to nothing. Repair or remove it." in note for note in live.loaded.notes())


@pytest.mark.parametrize("what", ["file", "folder"])
def test_nothing_runs_while_the_policy_is_a_link_to_nothing(world: World, what: str) -> None:
    file = world.file("policy")
    path = file
    if what == "folder":
        path = file.parent
        path.rmdir()
    path.symlink_to("/nonexistent/policy")

    with pytest.raises(SettingsError, match="is a link to nothing"):
        world.live()


def test_in_doubt_no_command_leaves_the_sandbox(world: World) -> None:
    world.write("user", {"sandbox": {"enabled": True}})
    world.write("project", {"sandbox": {"allowUnsandboxedCommands": "no"}})

    sandbox = world.live(trust=True).loaded.sandbox

    assert sandbox == {"enabled": True, "allowUnsandboxedCommands": False, "autoAllowBashIfSandboxed": False}


LIMITS = {
    "redact": ["CASE-[0-9]+"],
    "availableModels": ["m"],
    "allowedMcpServers": [{"serverName": "db"}],
    "allowedHttpHookUrls": ["https://hooks.example/*"],
    "httpHookAllowedEnvVars": ["TOKEN"],
}


@pytest.mark.parametrize("breaks", ["{", {"sandbox": True}, {"redact": 5}], ids=str)
def test_what_a_file_limited_before_it_broke_is_still_limited(world: World, breaks: Any) -> None:
    world.write("project", {"permissions": {"allow": ["Bash"]}})
    world.write("user", {**LIMITS, "model": "m", "sandbox": {"enabled": True, "excludedCommands": ["docker"]}})
    before = world.gather(trust=True)
    world.write("user", breaks)

    for _ in range(2):  # still so when it is read again, just as broken
        before = world.gather(before=before, trust=True)

    assert {name: before.get(name) for name in LIMITS} == LIMITS
    assert before.get("sandbox") == {"enabled": True, "autoAllowBashIfSandboxed": False}
    assert (before.doubtful, before.get("model")) == (False, None)


def test_the_home_folder_as_working_folder_has_the_users_settings_once(world: World) -> None:
    world.write("user", {"permissions": {"allow": ["Read"]}})
    places = places_for(world.root / "home", world.env, world.places.state)

    assert [(file.source, file.shown) for file in places.files()] == [
        ("local", ".handrail/settings.local.json"),
        ("local", ".claude/settings.local.json"),
        ("user", "~/.handrail/settings.json"),
        ("user", "~/.claude/settings.json"),
    ]


def test_folders_of_the_user_can_be_moved_and_those_of_policy_cannot(tmp_path: Path) -> None:
    env = {
        "HOME": str(tmp_path),
        "HANDRAIL_CONFIG_DIR": str(tmp_path / "h"),
        "CLAUDE_CONFIG_DIR": str(tmp_path / "c"),
        "HANDRAIL_POLICY_DIR": str(tmp_path / "p"),
    }
    places = places_for(tmp_path / "project", env, tmp_path / "state")

    assert (places.user, places.claude) == (tmp_path / "h", tmp_path / "c")
    assert not any(str(folder).startswith(str(tmp_path)) for folder in places.policy)


def test_a_project_reached_by_a_link_is_the_same_project(world: World) -> None:
    link = world.root / "link"
    link.symlink_to(world.places.cwd)

    assert places_for(link, world.env, world.places.state).cwd == world.places.cwd
    assert places_for(link, world.env, world.places.state).trust_file == world.places.trust_file


def test_what_was_refused_of_a_source_does_not_come_in_with_another(world: World) -> None:
    world.write("user", {"enableAllProjectMcpServers": True})
    world.write("mcp", {"mcpServers": {"old": {"command": "old"}}})
    before = world.gather(trust=True)
    world.write("mcp", {"mcpServers": {"old": {"command": "old"}, "new": {"command": "new"}}})
    world.write("user", {"enableAllProjectMcpServers": True, "env": {"A": "1"}})

    again = world.gather(before=before, frozen_sources=["project"], trust=True)

    assert [*before.servers] == [*again.servers] == ["old"]
    assert [*world.gather(before=before, trust=True).servers] == ["old", "new"]


def test_settings_without_effect_are_named_once_for_each_file(world: World) -> None:
    world.write(
        "user",
        {
            "language": "fr",
            "spinnerVerbs": {},
            "sandbox": {"enabled": False, "seatbelt": 1},
            "modle": "m",
            "_comment": "mine",
            "model": "m",
        },
    )
    found = [str(problem) for problem in world.gather().problems]

    assert "~/.handrail/settings.json: keys without effect: language, spinnerVerbs, sandbox.seatbelt" in found
    assert len(found) == 2  # the other one asks whether modle means model
