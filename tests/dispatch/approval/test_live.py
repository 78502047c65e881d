"""The policy in force: changes of a session, changes of the settings, and what becomes of one when the other comes."""

from pathlib import Path
from typing import Any

import pytest

from handrail.dispatch.approval.live import LivePolicy
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource

pytestmark = pytest.mark.anyio

LOCAL = RuleSource("local", "settings.local.json", 1)


def adding(rule: str, destination: str = "session") -> dict[str, Any]:
    name, _, spec = rule.partition("(")
    return {
        "type": "addRules",
        "behavior": "allow",
        "destination": destination,
        "rules": [{"toolName": name, "ruleContent": spec[:-1]}],
    }


class Settings:
    """Settings in memory: what is written to them is what they give."""

    def __init__(self) -> None:
        self.policy = Policy.empty("/work", "/home/dev")

    def where(self, destination: str) -> str:
        return destination

    def holds(self, update: Any) -> bool:
        rule = update["rules"][0]
        return any(known.text == f"{rule['toolName']}({rule['ruleContent']})" for known in self.policy.rules)

    def refuses(self, update: Any) -> str:
        return "that is never changed" if update.get("type") == "setMode" else ""

    def persist(self, update: Any) -> None:
        rule = update["rules"][0]
        self.add(f"{rule['toolName']}({rule['ruleContent']})")

    def add(self, text: str) -> None:
        self.policy = self.policy.adding(Behaviour.ALLOW, [text], LOCAL)


@pytest.mark.proves("G16", "P4")
async def test_every_change_is_a_new_snapshot_with_a_higher_version() -> None:
    settings = Settings()
    live = LivePolicy(lambda: settings.policy)
    seen = [live()]
    told: list[int] = []
    forget = live.listen(lambda: told.append(live().version))

    await live.change([adding("Bash(make)")])
    seen.append(live())
    settings.add("Bash(ls)")
    seen.append(live())
    forget()
    live.apply(lambda policy: policy.with_mode("acceptEdits"))
    seen.append(live())

    versions = [policy.version for policy in seen]
    assert versions == sorted(set(versions))
    assert [[rule.text for rule in policy.rules] for policy in seen] == [
        [],
        ["Bash(make)"],
        ["Bash(ls)", "Bash(make)"],
        ["Bash(ls)", "Bash(make)"],
    ]
    assert [policy.mode for policy in seen] == ["default", "default", "default", "acceptEdits"]
    assert told == versions[1:3]
    assert live() is live()


@pytest.mark.proves("G34")
async def test_what_was_written_comes_from_the_settings_from_then_on() -> None:
    settings = Settings()
    live = LivePolicy(lambda: settings.policy, settings)

    assert await live.change([adding("Bash(make)", "localSettings"), adding("Bash(ls)")]) == ()

    assert {(rule.text, rule.source.name) for rule in live().rules} >= {
        ("Bash(ls)", "session"),
        ("Bash(make)", "local"),
    }
    settings.policy = Policy.empty("/work", "/home/dev")  # somebody took the rule out of the file
    assert [(rule.text, rule.source.name) for rule in live().rules] == [("Bash(ls)", "session")]


async def test_a_change_that_changes_nothing_makes_no_snapshot(tmp_path: Path) -> None:
    policy = Policy.empty("/work", "/home/dev")
    live = LivePolicy(lambda: policy)
    live.apply(lambda policy: policy.with_mode("bypassPermissions"))  # not available

    assert live() is policy
    assert await live.change([{"type": "setMode", "mode": "unheard of"}]) == (
        "there is no mode 'unheard of'. Use one of default, acceptEdits, plan, auto, dontAsk, bypassPermissions.",
    )


async def test_a_change_that_those_who_keep_settings_refuse_is_not_made_for_the_session_either() -> None:
    settings = Settings()
    live = LivePolicy(lambda: settings.policy, settings)

    assert await live.change([{"type": "setMode", "mode": "acceptEdits"}]) == ("that is never changed",)
    assert live().mode == "default"


async def test_what_is_lent_holds_until_it_is_taken_back_and_changes_nothing_else() -> None:
    settings = Settings()
    live = LivePolicy(lambda: settings.policy)
    take_back = live.lend(lambda policy: policy.adding(Behaviour.ALLOW, ["Bash(make)"], RuleSource("command")))
    lent = live()

    await live.change([adding("Bash(pwd)")])
    settings.add("Bash(ls)")
    during = [rule.text for rule in live().rules]
    take_back()
    take_back()

    assert [rule.text for rule in lent.rules] == ["Bash(make)"]
    assert during == ["Bash(ls)", "Bash(make)", "Bash(pwd)"]
    assert [rule.text for rule in live().rules] == ["Bash(ls)", "Bash(pwd)"]
    assert live().version > lent.version
