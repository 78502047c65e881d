"""Rules that people agree to, kept in the settings of the folder."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.permissions.facts import NOTHING_SAID
from handrail.session.settings.rule_writer import RuleWriter
from handrail.session.settings.session_settings import open_settings
from handrail.tools.permission import Allow, Verdict
from tests.config.world import World
from tests.dispatch.approval.desk import Bash, Desk, Someone, all_met, until

pytestmark = pytest.mark.anyio


@pytest.mark.proves("G34", "G8")
async def test_always_allow_is_in_the_local_settings_and_counts_in_the_next_session(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    env = {"HOME": str(tmp_path / "home")}
    live = open_settings(folder, env, tmp_path / "state", NO_FLAGS_GIVEN, print)
    person = Someone()
    gate = PolicyGate(LivePolicy(live.policy, RuleWriter(live)), person, conditions=all_met)
    request = Desk(folder).request(Bash(), command="npm run build")

    asking = asyncio.create_task(gate.decide(request, NOTHING_SAID))
    await until(lambda: person.asked)
    assert person.asked[0].proposals[0].where == ".handrail/settings.local.json"
    person.now(person.asked[0].always())

    assert (await asking).verdict is Verdict.ALLOW
    written = json.loads((folder / ".handrail" / "settings.local.json").read_text())
    assert written == {"permissions": {"allow": ["Bash(npm run build *)"]}}
    again = open_settings(folder, env, tmp_path / "state", NO_FLAGS_GIVEN, print)
    assert [rule.written for rule in again.policy().rules] == [
        "local settings .handrail/settings.local.json:4: Bash(npm run build *)"
    ]
    assert (await gate.decide(request, NOTHING_SAID)).verdict is Verdict.ALLOW
    assert len(person.asked) == 1


def rules(*texts: str, **more: Any) -> dict[str, Any]:
    made = [{"toolName": text.partition("(")[0], "ruleContent": text.partition("(")[2][:-1] or None} for text in texts]
    return {"type": "addRules", "behavior": "allow", "destination": "userSettings", "rules": made, **more}


MANAGED = {
    "allowManagedPermissionRulesOnly": True,
    "permissions": {
        "allow": ["Bash(make *)"],
        "deny": ["Bash(rm *)"],
        "disableBypassPermissionsMode": "disable",
        "disableAutoMode": "disable",
    },
}
WIDENING = [
    {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
    {"type": "setMode", "mode": "bypassPermissions", "destination": "userSettings"},
    {"type": "setMode", "mode": "auto", "destination": "localSettings"},
    {"type": "setMode", "mode": ["auto"], "destination": "session"},
    rules("Bash"),
    rules("Bash", destination="session"),
    rules("Bash", type="replaceRules"),
    rules("Bash(rm *)", type="removeRules", behavior="deny"),
    rules("Bash(rm *)", type="removeRules", behavior="deny", destination="session"),
    rules("Bash(rm *)", type="removeRules", behavior="deny", destination="policySettings"),
    rules(type="replaceRules", behavior="deny", destination="policySettings"),
    rules(type="replaceRules", behavior="deny", destination="cliArg"),
    rules("Bash", destination="policySettings"),
    rules("Bash", destination=["session"]),
    rules("Bash", behavior="Allow"),
    rules("Bash", type="addrules"),
    {"type": "addRules", "behavior": "allow", "destination": "session", "rules": "Bash"},
    {"type": "addRules", "behavior": "allow", "destination": "session", "rules": [{"toolName": ["Bash"]}]},
    {"type": "addDirectories", "directories": ["/"], "destination": "session"},
    {"type": "addDirectories", "directories": ["/"], "destination": "userSettings"},
    {"type": "addDirectories", "directories": "/", "destination": "session"},
    {"type": "addDirectories", "directories": [".."], "destination": "session"},
    {},
]


@pytest.mark.proves("R3")
@pytest.mark.parametrize("update", WIDENING, ids=range(len(WIDENING)))
async def test_no_answer_widens_what_policy_keeps_narrow(tmp_path: Path, update: dict[str, Any]) -> None:
    world = World(tmp_path)
    world.write("policy", MANAGED)
    live = world.live(allow_bypass=True)
    before = live.policy()
    person = Someone()
    gate = PolicyGate(live.in_force(), person, conditions=all_met)
    desk = Desk(Path(world.places.cwd))
    person.now(Allow(updated_permissions=(update,)))

    assert (await gate.decide(desk.request(Bash(), command="npm test"), NOTHING_SAID)).verdict is Verdict.ALLOW

    after = live.policy()
    assert (after.mode, after.working_dirs) == (before.mode, before.working_dirs)
    assert {rule for rule in after.rules if rule.behaviour.value == "allow"} <= set(before.rules)
    assert {rule for rule in before.rules if rule.behaviour.value == "deny"} <= set(after.rules)
    assert not list((tmp_path / "home").rglob("*.json"))
    again = world.live(allow_bypass=True).policy()
    assert (again.mode, again.working_dirs, again.rules) == (before.mode, before.working_dirs, before.rules)


KEEPS = """
import os, sys
from pathlib import Path
from handrail.config.persist import persist
from handrail.config.places import places_for
places = places_for(os.getcwd(), os.environ, Path(sys.argv[1]))
for at in range(8):
    rule = {"toolName": "Bash", "ruleContent": f"{sys.argv[2]}{at} *"}
    persist({"type": "addRules", "behavior": "allow", "destination": "localSettings", "rules": [rule]}, places)
"""


def test_what_several_processes_agree_to_at_once_is_all_written_and_trusted(tmp_path: Path) -> None:
    world = World(tmp_path)
    command = [sys.executable, "-c", KEEPS, str(world.places.state)]
    started = [subprocess.Popen([*command, name], cwd=world.places.cwd, env=world.env) for name in "abc"]

    assert [each.wait(60) for each in started] == [0, 0, 0]

    settings = world.gather()
    assert settings.trust == "trusted"
    assert len(settings.get("permissions", "allow")) == 24
