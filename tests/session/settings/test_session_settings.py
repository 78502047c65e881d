"""Hooks that come while a session runs, and hooks that watch over its settings."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import RunContext
from handrail.hooks.news import ignore
from handrail.hooks.results import HookResult
from handrail.session.hooks import follow_settings, open_hooks
from handrail.tools.permission import Verdict
from tests.config.world import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def section(event: str, line: str, **more: Any) -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": line, **more}]}]}


class Session:
    """Settings and hooks as a session has them."""

    def __init__(self, root: Path) -> None:
        self.world = World(root)
        self.told: list[str] = []

    def begin(self) -> None:
        self.live = self.world.live(self.told)
        self.hooks = open_hooks(self.live.loaded, Path(self.world.places.cwd), session_id="s")
        follow_settings(self.hooks, self.live, self.told.append)

    async def prompted(self, event: str = "UserPromptSubmit", **fields: Any) -> HookResult | None:
        """What hooks say to a prompt, for which somebody looks at the settings."""
        run = RunContext(Path(self.world.places.cwd))
        await self.hooks.refresh(run, ignore)
        return await self.hooks.fire(event, fields, run) if self.hooks.wants(event) else None

    @property
    def rules(self) -> list[str]:
        return [rule.text for rule in self.live.policy().rules]

    def changes(self) -> list[str]:
        file = self.world.root / "project" / "seen"
        return [json.loads(line)["source"] for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def rule(name: str) -> dict[str, Any]:
    return {"permissions": {"allow": [name]}}


async def test_a_session_without_hooks_has_those_that_are_added(session: Session) -> None:
    session.begin()
    assert await session.prompted() is None

    session.world.write("user", {"hooks": section("UserPromptSubmit", "echo not yet >&2; exit 2")})

    answer = await session.prompted()
    assert answer is not None
    assert answer.block == "the UserPromptSubmit hook 'echo not yet >&2; exit 2' objects: not yet"


async def test_hooks_that_are_taken_away_are_gone(session: Session) -> None:
    session.world.write("user", {"hooks": section("UserPromptSubmit", "exit 2")})
    session.begin()
    session.world.write("user", {})

    assert await session.prompted() is None


@pytest.mark.proves("R9")
async def test_hooks_that_nobody_trusted_do_not_come_late(session: Session) -> None:
    session.begin()
    session.world.write("project", {"hooks": section("UserPromptSubmit", "touch PWNED")})

    assert await session.prompted() is None
    assert not (session.world.root / "project" / "PWNED").exists()
    assert any("hooks" in note for note in session.told)


@pytest.mark.proves("R9")
async def test_a_trusted_hook_that_was_replaced_does_not_run(session: Session) -> None:
    session.world.write("project", {"hooks": section("UserPromptSubmit", "echo fine")})
    session.world.trust()
    session.begin()
    first = await session.prompted()
    assert first is not None
    assert first.context == ("fine",)

    session.world.write("project", {"hooks": section("UserPromptSubmit", "touch PWNED; echo fine")})

    assert await session.prompted() is None
    assert not (session.world.root / "project" / "PWNED").exists()


async def test_what_is_wrong_with_a_hook_that_comes_late_is_said_once(session: Session) -> None:
    session.world.write("user", {"hooks": section("Stop", "true")})
    session.begin()
    session.world.write("user", {"hooks": section("FileChanged", "true") | section("Stop", "true")})
    await session.prompted()
    session.world.write("user", {"hooks": section("FileChanged", "true") | section("Stop", "true"), "model": "m"})
    await session.prompted()

    assert sum("FileChanged" in note and "never run" in note for note in session.told) == 1


async def test_strictness_and_limits_are_those_of_the_settings_in_force(session: Session) -> None:
    complaint = {"hooks": section("PreToolUse", "exit 1")}
    session.world.write("user", complaint)
    session.begin()
    call = {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "1"}
    strict = await session.prompted("PreToolUse", **call)
    limits = {"strictHooks": False, "allowedHttpHookUrls": ["http://a/*"], "httpHookAllowedEnvVars": ["A"]}
    session.world.write("user", {**complaint, **limits})
    lenient = await session.prompted("PreToolUse", **call)

    assert (strict and strict.verdict, lenient and lenient.verdict) == (Verdict.ASK, None)
    assert session.hooks.environment.urls == ("http://a/*",)
    assert session.hooks.environment.variables == ("A",)


REFUSING = section("ConfigChange", "cat >> seen; echo >> seen; echo hands off >&2; exit 2")
AGREEING = section("ConfigChange", "cat >> seen; echo >> seen")
SAYING_NO = section("ConfigChange", """echo '{"decision": "block", "reason": "hands off"}'""")


@pytest.mark.parametrize("guard", [REFUSING, SAYING_NO], ids=["exit 2", "decision"])
async def test_a_change_that_a_hook_refuses_does_not_count_and_the_person_is_told(
    session: Session, guard: dict[str, Any]
) -> None:
    session.world.write("user", {"hooks": guard, **rule("Bash(old)")})
    session.begin()
    session.world.write("user", rule("Bash(new)"))
    await session.prompted()

    assert session.rules == ["Bash(old)"]
    assert session.hooks.wants("ConfigChange")
    assert any("refused the change of the user settings" in note and "hands off" in note for note in session.told)


async def test_until_a_hook_has_agreed_the_old_settings_count(session: Session) -> None:
    session.world.write("user", {"hooks": AGREEING, **rule("Bash(old)")})
    session.begin()
    session.world.write("user", {"hooks": AGREEING, **rule("Bash(new)")})
    before = session.rules
    await session.prompted()

    assert (before, session.rules) == (["Bash(old)"], ["Bash(new)"])
    assert session.changes() == ["user_settings"]


async def test_what_was_refused_does_not_come_in_with_another_change(session: Session) -> None:
    guard = section("ConfigChange", "grep -q user_settings && exit 2; exit 0")
    session.world.write("policy", {"hooks": guard})
    session.begin()
    session.world.write("user", rule("Bash(user)"))
    await session.prompted()
    session.world.write("policy", {"hooks": guard, **rule("Bash(policy)")})
    await session.prompted()
    assert session.rules == ["Bash(policy)"]

    session.world.write("policy", rule("Bash(policy)"))
    session.world.write("user", rule("Bash(other)"))
    await session.prompted()

    assert sorted(session.rules) == ["Bash(other)", "Bash(policy)"]


async def test_policy_cannot_be_refused_and_hooks_are_told_of_it(session: Session) -> None:
    session.world.write("user", {"hooks": REFUSING})
    session.begin()
    session.world.write("policy", rule("Bash(policy)"))
    await session.prompted()

    assert session.rules == ["Bash(policy)"]
    await session.hooks.wait_idle()
    assert session.changes() == ["policy_settings"]


async def test_a_tool_in_a_thread_may_be_the_first_to_look(session: Session) -> None:
    session.world.write("user", {"hooks": AGREEING})
    session.begin()
    session.world.write("policy", rule("Bash(policy)"))

    policy = await anyio.to_thread.run_sync(session.live.policy)

    assert [each.text for each in policy.rules] == ["Bash(policy)"]
    await session.prompted()
    await session.hooks.wait_idle()
    assert session.changes() == ["policy_settings"]


@pytest.mark.proves("R9")
async def test_a_projects_hook_cannot_keep_its_trust(session: Session) -> None:
    session.world.write("project", {"hooks": REFUSING})
    session.world.trust()
    session.begin()
    assert session.hooks.wants("ConfigChange")
    session.world.store.revoke(session.world.places.cwd)
    await session.prompted()

    assert not session.hooks.wants("ConfigChange")


async def test_a_change_during_the_question_is_asked_about_again(session: Session) -> None:
    """The hook judged what the file said then; by now it says something else."""
    second = json.dumps({"permissions": {"allow": ["Bash(second)"]}})
    path = session.world.file("user")
    line = f"cat >> seen; echo >> seen; [ -e asked ] && exit 2; touch asked; echo '{second}' > {path}"
    session.world.write("policy", {"hooks": section("ConfigChange", line)})
    session.begin()
    session.world.write("user", rule("Bash(first)"))
    await session.prompted()

    assert session.rules == []
    assert session.changes() == ["user_settings", "user_settings"]


@pytest.mark.proves("R9")
async def test_a_script_that_was_changed_is_not_asked_about_its_own_change(session: Session) -> None:
    script = session.world.write("project/guard.sh", "exit 2")
    session.world.write("project", {"hooks": section("ConfigChange", "sh ./guard.sh") | section("Stop", "true")})
    session.world.trust()
    session.begin()

    script.write_text("touch PWNED; exit 2  # refuses that trust goes")
    await session.prompted()

    assert not (session.world.root / "project" / "PWNED").exists()
    assert session.live.loaded.settings.trust == "changed"


@pytest.mark.proves("R9")
async def test_nobody_can_refuse_that_a_changed_script_is_not_trusted(session: Session) -> None:
    script = session.world.write("project/start.sh", "echo fine")
    session.world.write("project", {"hooks": section("UserPromptSubmit", "sh ./start.sh")})
    session.world.write("user", {"hooks": section("ConfigChange", "exit 2")})
    session.world.trust()
    session.begin()

    script.write_text("touch PWNED")
    await session.prompted()

    assert not (session.world.root / "project" / "PWNED").exists()
    assert session.live.loaded.settings.trust == "changed"


async def test_a_hook_that_changes_the_settings_it_is_asked_about_holds_nothing_up(session: Session) -> None:
    file = session.world.write("user", {"hooks": section("ConfigChange", "true")})
    hooks = {"hooks": section("ConfigChange", f"echo >> {file}")}
    session.world.write("user", hooks)
    session.begin()
    session.world.write("user", {**hooks, **rule("Bash(ls)")})

    with anyio.fail_after(30):
        await session.prompted()

    assert session.rules == []
    assert [note for note in session.told if "change each time" in note] == [
        "The user settings change each time that hooks are asked about them. Those of before still count."
    ]
