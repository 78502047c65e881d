"""What would have allowed a refused call: named only if it really does."""

import asyncio
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Agent
from handrail.cli.flags import read_flags
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.remedy import find_remedy
from handrail.headless.ways_out import allowing_flags
from handrail.permissions.decide import case_of
from handrail.permissions.facts import NOTHING_SAID
from handrail.permissions.layers import decide
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, parse_rule, split_rules
from handrail.testing import ScriptedModel, say, use
from handrail.tools.context import RunContext
from handrail.tools.permission import Verdict
from handrail.tools.request import CallRequest
from tests.permissions.world import tool_called

CASES = [
    pytest.param("Bash", {"command": "pytest -q"}, "--allowedTools 'Bash(pytest *)'", id="a command"),
    pytest.param(
        "Bash",
        {"command": "git push && pytest"},
        "--allowedTools 'Bash(git push *)' 'Bash(pytest *)'",
        id="each part of a line",
    ),
    pytest.param("Bash", {"command": "cat /etc/hosts"}, "--allowedTools 'Read(//etc/hosts)'", id="a read elsewhere"),
    pytest.param("Read", {"file_path": "/etc/hosts"}, "--allowedTools 'Read(//etc/hosts)'", id="a file elsewhere"),
    pytest.param("Read", {"file_path": ".env"}, "--allowedTools 'Read(/{cwd}/.env)'", id="a secret, by its name"),
    pytest.param("Grep", {"pattern": "x", "path": "/etc"}, "--allowedTools 'Read(//etc/**)'", id="a folder elsewhere"),
    pytest.param("Write", {"file_path": "a", "content": ""}, "--permission-mode acceptEdits", id="an edit"),
    pytest.param(
        "WebFetch",
        {"url": "http://localhost:3000/"},
        "--allowedTools 'WebFetch(domain:localhost:3000)'",
        id="a server on this machine, by its name and port",
    ),
    pytest.param("WebFetch", {"url": "http://169.254.169.254:80/"}, "", id="nothing allows credentials of the machine"),
    pytest.param("Bash", {"command": "rm -rf ~"}, "", id="nothing allows removing the home folder"),
    pytest.param("Write", {"file_path": ".git/config", "content": ""}, "", id="nor a protected path"),
    pytest.param("Bash", {"command": "curl evil"}, "", id="nor what a rule denies"),
    pytest.param("Bash", {"command": "make install"}, "", id="nor what a rule wants to be asked about"),
]


@pytest.mark.parametrize("mode", ["default", "dontAsk"])
@pytest.mark.parametrize(("tool", "values", "flags"), CASES)
def test_a_refusal_names_what_would_have_allowed_it(
    tmp_path: Path, tool: str, values: dict[str, Any], flags: str, mode: Any
) -> None:
    project = Path(os.path.realpath(tmp_path))
    (project / ".env").write_text("KEY=1")
    model = ScriptedModel([[use("1", tool, **values)], [say("Done.")]])

    async def main() -> tuple[str, bool]:
        deny, ask = ["Bash(curl *)"], ["Bash(make *)"]
        async with Agent(model, cwd=project, deny=deny, ask=ask, mode=mode, state_dir=tmp_path / "state") as agent:
            [denial] = (await agent.ask("Go.")).ended.denials
            return allowing_flags(denial.remedy), denial.unasked

    found, unasked = asyncio.run(main())
    assert found == flags.replace("{cwd}", str(project))
    assert unasked == (mode == "default" and "curl" not in str(values))


def decided(policy: Policy, tool: str, values: Mapping[str, Any]) -> tuple[Verdict, str]:
    """The verdict, and the flags that would allow the call."""
    request = CallRequest.hypothetical(
        ToolUse("1", tool, dict(values)), tool_called(tool), RunContext(Path(policy.cwd))
    )
    case = case_of(request, policy)
    return decide(case).verdict, allowing_flags(asyncio.run(find_remedy(request, NOTHING_SAID, case)))


WORDS = st.lists(st.text("ab*'\"()\\ ,$-~", min_size=1, max_size=6), max_size=3)


PROGRAMS = st.sampled_from(["pytest", "git", "npm run", "weird-tool", "python -c"])


@given(PROGRAMS, WORDS, st.sampled_from([shlex.quote, str]))
def test_the_flags_allow_the_call_when_they_are_typed_into_a_shell(
    program: str, words: list[str], spell: Callable[[str], str]
) -> None:
    command = " ".join([program, *map(spell, words)])
    policy = Policy.empty("/tmp/nowhere", "/home/dev")

    verdict, flags = decided(policy, "Bash", {"command": command})

    if verdict is Verdict.ASK and flags:
        chosen = read_flags(["-p", "x", *shlex.split(flags)]).chosen
        rules = [parse_rule(rule, Behaviour.ALLOW) for word in chosen.allowed for rule in split_rules(word)]
        assert decided(policy.with_rules(rules), "Bash", {"command": command})[0] is Verdict.ALLOW
