"""From settings to hooks: who may have some, in which order, within which limits."""

from pathlib import Path
from typing import Any

import pytest

from handrail.hooks.runner import Hooks
from handrail.hooks.specs import HookSource
from handrail.session.hooks import in_order, open_hooks
from handrail.tools.context import RunContext
from handrail.tools.permission import Verdict
from tests.config.world import World

pytestmark = pytest.mark.anyio


def section(line: str, event: str = "Stop") -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": line}]}]}


def hooks_of(world: World, transcript: str = "") -> Hooks:
    """The hooks of a session in the world."""
    return open_hooks(world.load(), Path(world.places.cwd), session_id="s", transcript=transcript)


@pytest.mark.parametrize(
    ("settings", "ran"),
    [
        pytest.param({}, {"user", "project", "policy"}, id="all"),
        pytest.param({"user": {"disableAllHooks": True}}, {"policy"}, id="switched off, but not those of the policy"),
        pytest.param({"policy": {"allowManagedHooksOnly": True}}, {"policy"}, id="only those of the policy"),
        pytest.param({"policy": {"disableAllHooks": True}}, set(), id="the policy switches all off"),
    ],
)
async def test_who_may_have_hooks(settings: dict[str, Any], ran: set[str], tmp_path: Path) -> None:
    world, here = World(tmp_path), tmp_path / "ran"
    here.mkdir()
    for name in ("policy", "project", "user"):
        world.write(name, {"hooks": section(f"touch {name}"), **settings.get(name, {})})
    world.trust()

    await hooks_of(world).fire("Stop", {}, RunContext(here))

    assert {path.name for path in here.iterdir()} == ran


async def test_the_policys_rewriting_has_the_last_word_whatever_the_order_of_sources(tmp_path: Path) -> None:
    def rewriting(name: str) -> dict[str, Any]:
        output = f'{{"hookSpecificOutput":{{"hookEventName":"PreToolUse","updatedInput":{{"by":"{name}"}}}}}}'
        return section(f"echo '{output}'", "PreToolUse")

    for names in (("policy", "local", "user"), ("user", "local", "policy")):
        hooks = Hooks(sources=in_order([(HookSource(name), rewriting(name)) for name in names]))
        answer = await hooks.fire("PreToolUse", {"tool_name": "Bash"}, RunContext(tmp_path))
        assert answer.updated_input == {"by": "policy"}
        assert answer.messages == ("3 hooks rewrote the input differently; the last one in the settings counts",)


async def test_strictness_and_limits_are_handed_on(tmp_path: Path) -> None:
    world = World(tmp_path)
    complaint = {"hooks": section("exit 1", "PreToolUse")}
    limits = {"allowedHttpHookUrls": ["https://hooks.example/*"], "httpHookAllowedEnvVars": ["TOKEN"]}
    world.write("user", {**complaint, **limits, "strictHooks": False})
    hooks = hooks_of(world, transcript="t")
    run = RunContext(Path(world.places.cwd))

    assert (await hooks.fire("PreToolUse", {"tool_name": "Bash"}, run)).verdict is None
    where = hooks.environment
    assert (where.urls, where.variables, where.session_id, where.transcript, where.project) == (
        ("https://hooks.example/*",), ("TOKEN",), "s", "t", world.places.cwd,
    )  # fmt: skip
    world.write("user", complaint)
    assert (await hooks_of(world).fire("PreToolUse", {"tool_name": "Bash"}, run)).verdict is Verdict.ASK
