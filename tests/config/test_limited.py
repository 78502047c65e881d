"""--bare and --safe-mode: of files, and of flags in safe mode, only what forbids counts."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.config.flags import Wideners
from handrail.session.settings.session_settings import SessionSettings
from tests.config.world import World

HOOK = {"SessionStart": [{"hooks": [{"type": "command", "command": "touch marker"}]}]}
WIDE: dict[str, Any] = {
    "permissions": {"allow": ["Bash(*)"], "additionalDirectories": ["/"], "defaultMode": "acceptEdits"},
    "hooks": HOOK,
    "env": {"LEAK": "1"},
    "model": "m",
    "baseUrl": "http://127.0.0.1:9",
    "apiKeyHelper": "touch marker",
    "enableAllProjectMcpServers": True,
    "sandbox": {"excludedCommands": ["curl"], "autoAllowBashIfSandboxed": True},
}
SERVERS = {"mcpServers": {"x": {"command": "touch", "args": ["marker"]}}}


def allowed(live: SessionSettings) -> list[str]:
    return [rule.text for rule in live.policy().rules if rule.behaviour.value == "allow"]


@pytest.mark.parametrize("source", ["user", "user.claude", "project", "local.claude", "flag"])
@pytest.mark.parametrize("wideners", ["flags", "policy"])
def test_who_may_not_widen_does_not(world: World, source: str, wideners: Wideners) -> None:
    if source != "flag":
        world.write(source, WIDE)
        world.trust()
    world.write("mcp", SERVERS)
    flag = json.dumps(WIDE) if source == "flag" else ""

    live = world.live(settings=flag, trust=True, wideners=wideners)
    loaded = live.loaded

    widened = source == "flag" and wideners == "flags"
    assert (bool(loaded.hooks), "LEAK" in loaded.env, "/" in loaded.folders) == (widened,) * 3
    assert (allowed(live), loaded.mode.name) == ((["Bash(*)"], "acceptEdits") if widened else ([], "default"))
    assert bool(loaded.settings.get("apiKeyHelper")) is widened
    assert bool(loaded.sandbox.get("excludedCommands")) is widened
    assert loaded.settings.servers == {}
    assert loaded.notes() == ()


@pytest.mark.parametrize("wideners", ["flags", "policy"])
def test_policy_counts_whole(world: World, wideners: Wideners) -> None:
    world.write("policy", {key: value for key, value in WIDE.items() if key != "permissions"})
    world.write("policy.claude", {"permissions": {"allow": ["Glob"], "defaultMode": "acceptEdits"}})

    live = world.live(wideners=wideners)

    assert ([each.source for each in live.loaded.hooks], live.loaded.env["LEAK"]) == (["policy"], "1")
    assert (allowed(live), live.loaded.mode.name) == (["Glob"], "acceptEdits")


def test_rules_and_folders_of_flags_count_in_a_bare_run_and_not_in_safe_mode(world: World) -> None:
    flags: dict[str, Any] = {"allowed": ("Glob",), "disallowed": ("Bash",), "folders": ("/",)}

    bare, safe = world.live(wideners="flags", **flags), world.live(wideners="policy", **flags)

    assert (allowed(bare), allowed(safe)) == (["Glob"], [])
    assert ("/" in bare.loaded.folders, "/" in safe.loaded.folders) == (True, False)
    assert bare.denies_tool("Bash", None)
    assert safe.denies_tool("Bash", None)


def test_limits_that_people_set_themselves_hold_and_a_sandbox_of_anybody(world: World) -> None:
    own = {"sandbox": {"enabled": True}, "redact": ["CASE-[0-9]+"], "allowedMcpServers": []}
    world.write("user", own)
    world.write("project", own)
    of_user = world.load(wideners="flags")
    of_flag = world.load(wideners="policy", sources=(), settings=json.dumps(own))
    of_project = world.load(wideners="policy", sources=("project",))

    for loaded in (of_user, of_flag):
        assert loaded.sandbox == {"enabled": True, "autoAllowBashIfSandboxed": False}
        assert (loaded.settings.get("redact"), loaded.settings.get("allowedMcpServers")) == (["CASE-[0-9]+"], [])
    assert of_project.settings.values == {"sandbox": {"enabled": True, "autoAllowBashIfSandboxed": False}}


def test_a_file_that_changes_meanwhile_widens_nothing_and_forbids_at_once(world: World) -> None:
    live = world.live(wideners="flags")
    world.write("user", {**WIDE, "permissions": {"allow": ["Glob"], "deny": ["Read(.env)"]}})

    assert [rule.text for rule in live.policy().rules] == ["Read(.env)"]
    assert live.loaded.hooks == ()


PIECES = st.fixed_dictionaries(
    {},
    optional={
        "permissions": st.fixed_dictionaries(
            {},
            optional={
                **{
                    kind: st.lists(st.sampled_from(["Bash(ls *)", "Read", "Glob"])) for kind in ("allow", "ask", "deny")
                },
                "additionalDirectories": st.just(["/"]),
                "defaultMode": st.sampled_from(["default", "acceptEdits", "plan", "auto", "dontAsk"]),
            },
        ),
        "hooks": st.just(HOOK),
        "disableAllHooks": st.booleans(),
        "env": st.just({"LEAK": "1"}),
        "enableAllProjectMcpServers": st.booleans(),
        "sandbox": st.fixed_dictionaries({}, optional={"enabled": st.booleans()}),
    },
)


@given(st.dictionaries(st.sampled_from(["local", "project", "user", "user.claude"]), PIECES), PIECES)
def test_safe_mode_never_allows_anything_and_loses_no_rule_that_forbids(
    files: dict[str, dict[str, Any]], flag: dict[str, Any]
) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        for name, content in files.items():
            world.write(name, content)
        world.write("mcp", SERVERS)
        given_flags: dict[str, Any] = {"settings": json.dumps(flag), "trust": True, "allowed": ("Write",)}

        usual, safe = world.live(**given_flags), world.live(**given_flags, wideners="policy")

        assert (allowed(safe), safe.loaded.hooks, dict(safe.loaded.settings.servers)) == ([], (), {})
        assert (safe.loaded.env, safe.loaded.folders) == (world.env, (world.places.cwd,))
        assert safe.loaded.mode.name in ("default", "plan", "dontAsk")
        forbidding = [rule.text for rule in usual.policy().rules if rule.behaviour.value != "allow"]
        assert [rule.text for rule in safe.policy().rules] == forbidding
        confined = any(each.get("sandbox", {}).get("enabled") for each in (*files.values(), flag))
        assert bool(safe.loaded.sandbox.get("enabled")) is confined
