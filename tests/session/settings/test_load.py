"""From settings, flags and environment to what a session works with; and what happens when files change meanwhile."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.request import ThinkingOptions
from handrail.errors import ProviderSetupError, SettingsError
from handrail.loop.run_config import RequestOptions
from handrail.processes.sandbox.placeholders import Placeholders
from handrail.providers.choose import ModelOptions
from handrail.session.agent import Agent
from handrail.session.models.options import credential, model_options, thinking_options
from handrail.session.services import tool_services
from handrail.session.settings.load import HookSection
from handrail.session.settings.session_settings import SessionSettings
from handrail.testing import ScriptedModel
from handrail.tools.context import ToolContext
from handrail.tools.function import tool
from handrail.tools.output import Output
from handrail.tools.schema import Input
from handrail.tools.tool import PromptView, Tool
from tests.config.world import World


def change(live: SessionSettings, *updates: dict[str, Any]) -> tuple[str, ...]:
    """What could not be done of these changes."""
    return asyncio.run(live.in_force().change(updates))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


# The mode


@pytest.mark.parametrize(
    ("settings", "asked", "mode"),
    [
        pytest.param({}, {}, "default", id="nothing said"),
        pytest.param({"defaultMode": "manual"}, {}, "default", id="the other name of default"),
        pytest.param({"defaultMode": "plan"}, {}, "plan", id="settings"),
        pytest.param({"defaultMode": "plan"}, {"mode": "acceptEdits"}, "acceptEdits", id="the flag wins"),
        pytest.param({}, {"bypass": True}, "bypassPermissions", id="the dangerous flag"),
        pytest.param({"defaultMode": "bypassPermissions"}, {}, "bypassPermissions", id="bypass by settings"),
        pytest.param(
            {"defaultMode": "bypassPermissions", "disableBypassPermissionsMode": "disable"}, {}, "default", id="off"
        ),
        pytest.param({"defaultMode": "auto", "disableAutoMode": "disable"}, {}, "default", id="auto switched off"),
    ],
)
@pytest.mark.usefixtures("as_user")
def test_the_mode_comes_from_flag_or_settings(
    world: World, settings: dict[str, Any], asked: dict[str, Any], mode: str
) -> None:
    world.write("user", {"permissions": settings})

    live = world.live(**asked)

    assert live.loaded.mode.name == live.policy().mode == mode


@pytest.mark.parametrize("source", ["policy", "user", "project"])
@pytest.mark.usefixtures("as_user")
def test_bypass_can_be_switched_off_by_anybody_and_by_any_way_in(world: World, source: str) -> None:
    world.write(source, {"permissions": {"disableBypassPermissionsMode": "disable"}})

    for asked in ({"bypass": True}, {"mode": "bypassPermissions"}):
        with pytest.raises(SettingsError, match="disableBypassPermissionsMode is set"):
            world.load(**asked)
    live = world.live(allow_bypass=True)
    assert "disableBypassPermissionsMode is set" in " ".join(live.loaded.notes())
    assert live.policy().with_mode("bypassPermissions").mode == "default"


@pytest.mark.usefixtures("as_root")
def test_root_bypasses_nothing_outside_a_sandbox(world: World) -> None:
    assert world.load(bypass=True).mode.name == "bypassPermissions"
    world.env.pop("IS_SANDBOX")
    world.write("user", {"env": {"IS_SANDBOX": "1"}})

    with pytest.raises(SettingsError, match="you are root"):
        world.load(bypass=True)
    world.write("user", {"permissions": {"defaultMode": "bypassPermissions"}})
    loaded = world.load()
    assert loaded.mode.name == "default"
    assert "you are root" in " ".join(loaded.notes())


@pytest.mark.usefixtures("as_user")
def test_bypass_may_be_made_available_without_being_entered(world: World) -> None:
    policy = world.live(allow_bypass=True).policy()

    assert policy.mode == "default"
    assert policy.with_mode("bypassPermissions").mode == "bypassPermissions"
    assert world.live().policy().with_mode("bypassPermissions").mode == "default"


# Policy of the machine


@pytest.mark.proves("P3")
def test_policy_can_insist_on_its_own_rules_and_nobody_loses_a_deny(world: World) -> None:
    world.write("policy", {"allowManagedPermissionRulesOnly": True, "permissions": {"allow": ["Read(//p)"]}})
    world.write("user", {"permissions": {"allow": ["Bash"], "deny": ["Glob"], "additionalDirectories": ["/"]}})

    live = world.live(allowed=("Edit",), disallowed=("Sleep",))
    policy = live.policy()

    assert [(rule.behaviour.value, rule.text) for rule in policy.rules] == [
        ("allow", "Read(//p)"),
        ("deny", "Glob"),
        ("deny", "Sleep"),
    ]
    assert policy.working_dirs == (world.places.cwd,)
    agreed = {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash"}]}
    more = {"type": "addDirectories", "directories": ["/"], "destination": "session"}
    refusal = "policy allows no allow rules and folders but its own"
    assert change(live, agreed, more) == (refusal, refusal)
    assert change(live, {**agreed, "type": "removeRules"}) == ()


GROUP = [{"hooks": [{"type": "command", "command": "true"}]}]


@pytest.mark.proves("H1")
def test_hooks_are_handed_on_file_by_file_with_their_source(world: World) -> None:
    for name in ("policy", "project", "user.claude"):
        world.write(name, {"hooks": {"PreToolUse": GROUP}})

    hooks = world.load(trust=True).hooks

    section = {"PreToolUse": GROUP}
    folder = str(world.root / "etc" / "handrail")
    assert hooks == (
        HookSection("policy", ".handrail", str(world.file("policy")), folder, section),
        HookSection("project", ".handrail", ".handrail/settings.json", world.places.cwd, section),
        HookSection("user", ".claude", "~/.claude/settings.json", str(world.root / "home/.claude"), section),
    )
    assert [hook.source for hook in world.load().hooks] == ["policy", "user"]


@pytest.mark.parametrize(
    ("policy", "user", "left"),
    [
        ({}, {}, ["policy", "user"]),
        ({}, {"disableAllHooks": True}, ["policy"]),
        ({"allowManagedHooksOnly": True}, {}, ["policy"]),
        ({"disableAllHooks": True}, {}, []),
    ],
)
def test_hooks_can_be_switched_off_and_those_of_policy_only_by_policy(
    world: World, policy: dict[str, Any], user: dict[str, Any], left: list[str]
) -> None:
    world.write("policy", {"hooks": {"Stop": GROUP}, **policy})
    world.write("user", {"hooks": {"Stop": GROUP}, **user})

    assert [hook.source for hook in world.load().hooks] == left


# Folders, variables, model


def test_folders_come_from_settings_and_flags_as_real_paths(world: World) -> None:
    for name in ("common", "flag", "home/notes"):
        (world.root / name).mkdir()
    (world.root / "link").symlink_to("common")
    world.write("user", {"permissions": {"additionalDirectories": ["../link", "~/notes", "../common", "../missing"]}})

    loaded = world.load(folders=("../flag",))

    root = world.root
    assert loaded.folders == (world.places.cwd, str(root / "common"), str(root / "home/notes"), str(root / "flag"))
    assert "permissions.additionalDirectories names '../missing', which is not a folder." in " ".join(loaded.notes())


def test_variables_of_settings_go_before_those_of_the_environment(world: World) -> None:
    world.env["A"] = "outside"
    world.write("user", {"env": {"A": "settings", "B": "2"}})

    env = world.load().env

    assert (env["A"], env["B"], env["HOME"]) == ("settings", "2", world.env["HOME"])


def test_flags_go_before_variables_and_variables_before_settings(world: World) -> None:
    world.write(
        "user", {"model": "m", "fallbackModel": ["f", "g"], "baseUrl": "http://127.0.0.1:9/v1", "provider": "openai"}
    )
    assert model_options(world.load(), ModelOptions()) == ModelOptions(
        "openai", "m", "http://127.0.0.1:9/v1", "", ("f", "g")
    )

    world.env |= {"ANTHROPIC_MODEL": "v", "ANTHROPIC_BASE_URL": "http://127.0.0.1:8"}
    assert model_options(world.load(), ModelOptions()) == ModelOptions("", "", "", "", ("f", "g"))

    flags = ModelOptions("anthropic", "x", "http://127.0.0.1:7", "", ("y",))
    assert model_options(world.load(), flags) == flags


def test_settings_say_which_models_there_are_and_how_a_server_names_them(world: World) -> None:
    world.write("user", {"availableModels": ["sonnet"], "modelOverrides": {"sonnet": "prod"}})

    assert model_options(world.load(), ModelOptions()) == ModelOptions(
        available=("sonnet",), overrides={"sonnet": "prod"}
    )


def test_a_helper_gives_the_credential_when_the_environment_holds_none(world: World) -> None:
    world.write("user", {"apiKeyHelper": "printf ' key-%s\\n' $WHO", "env": {"WHO": "me"}})
    assert credential(world.load()) == "key-me"

    world.env["ANTHROPIC_API_KEY"] = "own"
    assert credential(world.load()) == ""


def test_the_users_helper_does_not_find_a_file_of_the_project(world: World) -> None:
    world.write("project/key", "#!/bin/sh\necho stolen\n").chmod(0o755)
    world.write("user", {"apiKeyHelper": "./key"})
    with pytest.raises(ProviderSetupError, match="exit code 127"):
        credential(world.load())

    world.write("user", {})
    world.write("project", {"apiKeyHelper": "./key"})
    assert credential(world.load(trust=True)) == "stolen"


@pytest.mark.parametrize(("command", "says"), [("exit 3", "exit code 3"), ("true", "printed nothing")])
def test_a_helper_that_gives_nothing_is_named(world: World, command: str, says: str) -> None:
    world.write("user", {"apiKeyHelper": command})

    with pytest.raises(ProviderSetupError, match=says):
        credential(world.load())


@pytest.mark.proves("R9")
def test_a_helper_of_an_untrusted_project_does_not_run(world: World) -> None:
    marker = world.root / "ran"
    world.write("project", {"apiKeyHelper": f"touch {marker}; echo key"})

    assert credential(world.load()) == ""
    assert not marker.exists()


def test_how_hard_to_think_is_left_to_flags(world: World) -> None:
    world.write("user", {"effortLevel": "high", "alwaysThinkingEnabled": True})
    loaded = world.load()

    asked = RequestOptions(effort="low", thinking=ThinkingOptions("off"))

    assert thinking_options(loaded, RequestOptions()) == RequestOptions(
        effort="high", thinking=ThinkingOptions("adaptive")
    )
    assert thinking_options(loaded, asked) == asked


# What a start pays for

PAYING = """
import sys
from pathlib import Path
from handrail.session.settings.session_settings import open_settings
from handrail.session.settings.caller_names import NO_NAMES
from handrail.config.flags import SettingsFlags

root = Path(sys.argv[1])
env, flags = {"HOME": str(root / "home")}, SettingsFlags()
live = open_settings(root / "project", env, root / "state", flags, print, names=NO_NAMES)
live.denies_tool("Read", None)
print(" ".join(sorted(name for name in sys.modules if name.startswith(("handrail.config.", "handrail.permissions")))))
"""


def test_a_start_loads_no_more_of_settings_than_it_needs(world: World) -> None:
    def loaded() -> set[str]:
        ran = subprocess.run(
            [sys.executable, "-c", PAYING, str(world.root)], capture_output=True, text=True, check=True
        )
        return {name.removeprefix("handrail.") for name in ran.stdout.split()}

    names = ("execution", "flags", "places", "problems", "remote_servers", "snapshot", "watch")
    least = {f"config.{name}" for name in names}
    assert loaded() == least

    world.write("user", {"permissions": {"deny": ["Read(.env)"], "allow": ["Glob"]}, "model": "m"})
    read = {
        f"config.{name}"
        for name in ("check", "document", "json_paths", "keys", "load", "managed", "mcp_files", "merge", "unused_keys")
    }
    loaded()  # the rules are checked once, and what was found is kept
    assert loaded() == least | read | {"config.files", "permissions", "permissions.modes"}


# Tools that are taken away


@pytest.mark.proves("B13")
def test_a_deny_rule_for_a_whole_tool_takes_it_away(world: World) -> None:
    world.write("project", {"permissions": {"deny": ["Read(.env)", "Glob", "mcp__*"]}})

    denied = world.live(disallowed=("Sleep",)).denies_tool

    assert [denied(name, None) for name in ("Glob", "Read", "Sleep", "mcp__a__b")] == [True, False, True, True]


class EitherInput(Input):
    text: str


@pytest.mark.proves("B14")
def test_in_plan_mode_tools_that_never_only_read_are_not_offered(world: World) -> None:
    @tool()
    async def change(text: str) -> str:
        """Changes something."""
        return text

    @tool(read_only=True)
    async def look(text: str) -> str:
        """Looks at something."""
        return text

    class Either(Tool[EitherInput]):
        name = "either"
        input_model = EitherInput

        def prompt(self, view: PromptView) -> str:
            return "Looks or changes."

        def is_read_only(self, args: EitherInput) -> bool:
            return args.text == "look"

        async def call(self, args: EitherInput, ctx: ToolContext) -> Output:
            return Output(text=args.text)

    either = Either()

    def names(mode: str) -> list[str]:
        agent = Agent(ScriptedModel([]), [change, look, either], builtin_tools=["Read"], env=world.env, mode=mode)
        return [each.name for each in agent.tools]

    assert names("default") == ["Read", "change", "either", "look"]
    assert names("plan") == ["Read", "either", "look"]


# Files that change


@pytest.mark.proves("G21")
def test_a_change_counts_with_the_next_call_and_is_told_with_its_source(world: World) -> None:
    told: list[str] = []
    heard: list[str] = []
    live = world.live(told, heard)
    before = live.policy()

    world.write("project", {"permissions": {"deny": ["Bash"]}})
    after = live.policy()

    assert live.policy() is after
    assert (before.rules, [rule.text for rule in after.rules]) == ((), ["Bash"])
    assert after.version > before.version
    assert heard == ["project"]
    world.write("user", {"permissions": {"deny": ["Glob"]}})
    world.write("policy", {"permissions": {"deny": ["Read"]}})
    assert [rule.text for rule in live.policy().rules] == ["Read", "Bash", "Glob"]
    assert heard == ["project", "policy", "user"]


def test_a_file_that_breaks_while_running_keeps_what_it_forbade(world: World) -> None:
    told: list[str] = []
    world.write("user", {"permissions": {"deny": ["Bash(rm *)"], "allow": ["Glob"], "ask": ["Read"]}})
    world.write("policy", {"permissions": {"deny": ["WebSearch"]}})
    live = world.live(told)
    live.policy()

    for _ in range(2):  # still so when it is saved again, just as broken
        world.write("user", "{" + " " * len(told))
        texts = [(rule.behaviour.value, rule.text) for rule in live.policy().rules]
        assert sorted(texts) == [("ask", "Read"), ("deny", "Bash(rm *)"), ("deny", "WebSearch")]
    assert any("what it denied before still applies" in note for note in told)

    world.write("policy", "{")
    assert "WebSearch" in {rule.text for rule in live.policy().rules}
    assert any("The policy that was read before still applies" in note for note in told)

    world.write("user", {})
    assert {rule.text for rule in live.policy().rules} == {"WebSearch"}


def test_a_file_that_was_broken_from_the_start_stays_in_doubt(world: World) -> None:
    world.write("user", "{")
    world.write("policy", {"permissions": {"allow": ["Bash"]}})
    live = world.live()
    assert live.policy().rules == ()

    world.write("user", "{ ")
    assert live.policy().rules == ()
    world.write("user", {})
    assert [rule.text for rule in live.policy().rules] == ["Bash"]


def test_a_deny_list_that_becomes_a_number_while_running_keeps_its_rules(world: World) -> None:
    world.write("user", {"permissions": {"deny": ["Bash"], "allow": ["Glob"]}})
    live = world.live()
    live.policy()

    world.write("user", {"permissions": {"deny": 5, "allow": ["Glob"]}})

    assert [rule.text for rule in live.policy().rules] == ["Bash"]


@pytest.mark.usefixtures("as_user")
def test_what_is_switched_off_while_running_is_off_and_the_rest_of_the_change_counts(world: World) -> None:
    told: list[str] = []
    (world.root / "more").mkdir()
    live = world.live(told, bypass=True, folders=("../more",))
    assert live.policy().mode == "bypassPermissions"

    (world.root / "more").rmdir()
    world.write("policy", {"permissions": {"disableBypassPermissionsMode": "disable", "deny": ["Bash"]}})
    policy = live.policy()

    assert (policy.mode, [rule.text for rule in policy.rules]) == ("default", ["Bash"])
    assert any("disableBypassPermissionsMode is set" in note for note in told)


def test_a_program_that_gives_policy_is_asked_once(world: World) -> None:
    log = world.root / "log"
    program = f'echo x >> {log}; echo \'{{"permissions": {{"deny": ["Bash"]}}}}\''
    world.write("policy", {"policyCommand": ["/bin/sh", "-c", program]})
    live = world.live()
    live.policy()

    world.write("user", {"permissions": {"deny": ["Glob"]}})

    assert [rule.text for rule in live.policy().rules] == ["Bash", "Glob"]
    assert log.read_text() == "x\n"


def test_trust_that_is_given_or_taken_meanwhile_counts(world: World) -> None:
    heard: list[str] = []
    world.write("project", {"permissions": {"allow": ["Bash(make)"]}})
    live = world.live(changes=heard)
    assert live.policy().rules == ()

    world.trust()
    assert [rule.text for rule in live.policy().rules] == ["Bash(make)"]
    world.store.revoke(world.places.cwd)
    assert live.policy().rules == ()
    assert heard == ["trust", "trust"]


@pytest.mark.proves("R9")
def test_trust_for_one_run_covers_what_was_there_when_it_began(world: World) -> None:
    world.write("project", {"permissions": {"allow": ["Bash(make)", "Glob"]}})
    live = world.live(trust=True)
    live.policy()

    world.write("project", {"permissions": {"allow": ["Bash(make)"]}})
    assert [rule.text for rule in live.policy().rules] == ["Bash(make)"]
    agreed = {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Sleep"}], "destination": "localSettings"}
    change(live, agreed)
    assert {rule.text for rule in live.policy().rules} == {"Bash(make)", "Sleep"}
    world.write("project", {"permissions": {"allow": ["Bash(make)", "Bash"]}})
    assert {rule.text for rule in live.policy().rules} == {"Sleep"}  # what a person agreed to in this session


def test_settings_that_come_into_a_running_session_wait_for_trust(world: World) -> None:
    live = world.live(trust=True)
    live.policy()

    world.write("local", {"permissions": {"allow": ["Bash"], "deny": ["Glob"]}})

    assert [rule.text for rule in live.policy().rules] == ["Glob"]


def test_the_file_of_a_flag_is_read_once_because_the_agent_may_write_it(world: World) -> None:
    file = world.write("project/ci.json", {"permissions": {"allow": ["Bash(make)"]}})
    live = world.live(settings="ci.json")
    live.policy()

    file.write_text('{"permissions": {"allow": ["Bash"]}}')
    world.write("user", {"permissions": {"deny": ["Glob"]}})

    assert [rule.text for rule in live.policy().rules] == ["Bash(make)", "Glob"]


def test_policy_that_is_dropped_in_while_running_counts_and_is_looked_at_again(world: World) -> None:
    world.file("policy")
    live = world.live()
    assert live.policy().rules == ()

    world.write("etc/handrail/managed-settings.d/1.json", {"permissions": {"deny": ["Bash"]}})
    assert [rule.text for rule in live.policy().rules] == ["Bash"]
    world.write("etc/handrail/managed-settings.d/1.json", {"permissions": {"deny": ["Bash", "Glob"]}})
    assert [rule.text for rule in live.policy().rules] == ["Bash", "Glob"]


def test_a_mode_that_cannot_be_entered_is_not_written_down_either(world: World) -> None:
    live = world.live()

    update = {"type": "setMode", "mode": "bypassPermissions", "destination": "localSettings"}
    assert change(live, update) == ("the mode 'bypassPermissions' cannot be entered here; 'default' stays",)

    assert live.policy().mode == "default"
    assert not (world.root / "project" / ".handrail").exists()


def test_a_rule_that_was_removed_and_written_again_counts(world: World) -> None:
    world.write("project", {"permissions": {"deny": ["Glob", "Bash"]}})
    live = world.live()
    remove = {
        "type": "removeRules",
        "behavior": "deny",
        "rules": [{"toolName": "Glob"}],
        "destination": "projectSettings",
    }

    change(live, remove)
    assert [rule.text for rule in live.policy().rules] == ["Bash"]
    world.write("project", {"permissions": {"deny": ["Glob", "Bash"]}})
    assert [rule.text for rule in live.policy().rules] == ["Glob", "Bash"]


@pytest.mark.proves("G34")
def test_an_update_counts_at_once_is_written_and_survives_a_reload(world: World) -> None:
    live = world.live()
    rules = [{"toolName": "Bash", "ruleContent": "make *"}]
    update = {"type": "addRules", "behavior": "allow", "rules": rules, "destination": "localSettings"}

    assert change(live, update) == ()
    assert "Bash(make *)" in {rule.text for rule in live.policy().rules}
    change(live, {"type": "setMode", "mode": "acceptEdits", "destination": "session"})

    content = json.loads((world.root / "project/.handrail/settings.local.json").read_text())
    assert content == {"permissions": {"allow": ["Bash(make *)"]}}
    world.write("user", {"permissions": {"deny": ["Glob"]}})
    policy = live.policy()
    assert {rule.text for rule in policy.rules} == {"Bash(make *)", "Glob"}
    assert policy.mode == "acceptEdits"


def test_a_rule_that_cannot_be_read_is_named_with_file_line_and_key(world: World) -> None:
    told: list[str] = []
    world.write("project", '{"permissions": {"deny": ["Glob",\n"Bash("]}}')

    world.live(told).policy()

    what = ".handrail/settings.json:2: permissions.deny[1] is 'Bash(' - the bracket is not closed; add )."
    assert told == [f"{what} Until it is corrected, calls of Bash need consent."]


def test_what_a_person_agreed_to_counts_to_the_end_of_the_session_although_the_folder_is_not_trusted(
    world: World,
) -> None:
    world.write("project", {"permissions": {"allow": ["Bash"]}})
    live = world.live()
    agreed = {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Sleep"}], "destination": "localSettings"}

    assert change(live, agreed) == ()
    world.write("user", {"permissions": {"deny": ["Glob"]}})  # everything is read again

    assert [rule.text for rule in live.policy().rules if rule.behaviour.value == "allow"] == ["Sleep"]


def test_folders_that_are_added_in_a_session_are_working_folders_for_tools_too(world: World) -> None:
    live = world.live()
    more = world.root / "more"
    more.mkdir()

    assert change(live, {"type": "addDirectories", "directories": [str(more)], "destination": "session"}) == ()

    assert live.folders() == (world.places.cwd, str(more))


def test_how_much_a_command_may_write_follows_the_settings(world: World) -> None:
    live = world.live()
    services = tool_services(live)
    usual = services.output_quota()

    world.write("user", {"commandOutputQuota": 5_000})
    live.look()

    assert (usual, services.output_quota()) == (2_000_000_000, 5_000)


def test_names_that_are_kept_occupied_while_commands_run_are_not_settings(world: World) -> None:
    world.write("user", {"permissions": {"allow": ["Bash(ls)"]}})
    told: list[str] = []
    heard: list[str] = []
    live = world.live(told, heard)
    occupied = Placeholders()
    occupied.take([f"{world.places.cwd}/.mcp.json", f"{world.places.cwd}/.handrail"])

    live.look()
    beside = world.live(told)
    occupied.close()

    assert (told, heard) == ([], [])
    assert [rule.text for rule in beside.policy().rules] == ["Bash(ls)"]
