"""From settings to hooks: who may have some, in which order, within which limits."""

import os
from pathlib import Path
from typing import Any

import pytest

from handrail.hooks.specs import HookSource
from handrail.session.hooks import HookOptions, make_hooks
from handrail.tools.context import RunContext
from handrail.tools.permission import Verdict

pytestmark = pytest.mark.anyio


def section(line: str, event: str = "Stop") -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": line}]}]}


@pytest.mark.parametrize(
    ("wishes", "ran"),
    [
        pytest.param(HookOptions(), {"user", "project", "policy"}, id="all"),
        pytest.param(HookOptions(disabled=True), {"policy"}, id="switched off, but not those of the policy"),
        pytest.param(HookOptions(policy_only=True), {"policy"}, id="only those of the policy"),
        pytest.param(HookOptions(policy_disabled=True), set(), id="the policy switches all off"),
    ],
)
async def test_who_may_have_hooks(wishes: HookOptions, ran: set[str], tmp_path: Path) -> None:
    names = ("policy", "project", "user")
    hooks = make_hooks([(HookSource(name), section(f"touch {name}")) for name in names], os.environ, tmp_path, wishes)

    await hooks.fire("Stop", {}, RunContext(tmp_path))

    assert {path.name for path in tmp_path.iterdir()} == ran


async def test_the_policys_rewriting_has_the_last_word_whatever_the_order_of_sources(tmp_path: Path) -> None:
    def rewriting(name: str) -> dict[str, Any]:
        output = f'{{"hookSpecificOutput":{{"hookEventName":"PreToolUse","updatedInput":{{"by":"{name}"}}}}}}'
        return section(f"echo '{output}'", "PreToolUse")

    for names in (("policy", "local", "user"), ("user", "local", "policy")):
        hooks = make_hooks([(HookSource(name), rewriting(name)) for name in names], os.environ, tmp_path)
        answer = await hooks.fire("PreToolUse", {"tool_name": "Bash"}, RunContext(tmp_path))
        assert answer.updated_input == {"by": "policy"}
        assert answer.messages == ("3 hooks rewrote the input differently; the last one in the settings counts",)


async def test_strictness_and_limits_are_handed_on(tmp_path: Path) -> None:
    wishes = HookOptions(strict=False, urls=("https://hooks.example/*",), variables=("TOKEN",))
    sources = [(HookSource("user"), section("exit 1", "PreToolUse"))]
    hooks = make_hooks(sources, os.environ, tmp_path, wishes, session_id="s", transcript="t")

    assert (await hooks.fire("PreToolUse", {"tool_name": "Bash"}, RunContext(tmp_path))).verdict is None
    where = hooks.environment
    assert (where.urls, where.variables, where.session_id, where.transcript, where.project) == (
        ("https://hooks.example/*",), ("TOKEN",), "s", "t", str(tmp_path),
    )  # fmt: skip
    strict = make_hooks(sources, os.environ, tmp_path)
    assert (await strict.fire("PreToolUse", {"tool_name": "Bash"}, RunContext(tmp_path))).verdict is Verdict.ASK
