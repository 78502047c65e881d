"""Hostile and broken hooks, each a line of the corpus, for real: through an agent with the real gate."""

import json
import os
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from handrail import Hooks, Outcome, Output, Status, tool
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.specs import HookSource
from handrail.loop.events import ResultsComplete
from handrail.testing import FixedApprover, ScriptedModel, say, use
from tests.hooks.judge import RuleGate
from tests.opening import open_agent

pytestmark = pytest.mark.anyio

FRAME = re.compile(r"<\s*/?\s*system-reminder", re.IGNORECASE)
LINES = [json.loads(line) for line in (Path(__file__).parent / "corpus" / "scenarios.jsonl").read_text().splitlines()]


def expecting(*expected: str) -> pytest.MarkDecorator:
    chosen = [pytest.param(line, id=line["id"]) for line in LINES if line["expect"] in expected]
    return pytest.mark.parametrize("line", chosen)


async def played(
    line: Any, folder: Path, *, allow: bool = False, trust: Literal["trusted", "untrusted"] = "trusted"
) -> tuple[Outcome, Hooks, list[str]]:
    """One call of a shell under these hooks; how it ended, and what a person was asked."""

    @tool(name="Shell")
    async def shell(command: str) -> Output:
        """Would run a command."""
        return Output(text=line["output"])

    source = HookSource("project", ".handrail", ".handrail/settings.json", str(folder), trust)
    env = {**os.environ, "HANDRAIL_STATE_DIR": str(folder / "state")}
    hooks = Hooks(sources=[(source, each) for each in line["hooks"]], environment=HookEnvironment(env))
    person = FixedApprover(allow=False)
    gate = RuleGate(folder, person, allow=["Shell"] if allow else [])
    model = ScriptedModel([[use("1", "Shell", command="ls")], [say("Done.")]])
    async with open_agent(model, [shell], builtin_tools=False, cwd=folder, env=env, hooks=hooks, gate=gate) as agent:
        found = [event.outcomes async for event in agent.run("Go") if isinstance(event, ResultsComplete)]
    [[outcome]] = found
    return outcome, hooks, person.asked


def test_every_class_is_there() -> None:
    assert {line["expect"] for line in LINES} == {
        "blocked", "not_an_allow", "escaped", "no_shell_injection", "strictest_wins", "no_marker",
    }  # fmt: skip


@expecting("blocked")
@pytest.mark.proves("H2")
async def test_exit_code_2_blocks_whatever_else_is_said(line: Any, tmp_path: Path) -> None:
    outcome, _, asked = await played(line, tmp_path, allow=True)

    assert (outcome.status, asked) == (Status.DENIED, [])


@expecting("not_an_allow")
@pytest.mark.proves("H2", "R2")
async def test_malformed_output_is_not_an_allow(line: Any, tmp_path: Path) -> None:
    outcome, _, asked = await played(line, tmp_path)

    assert (outcome.status, asked) == (Status.DENIED, ["Shell('ls')"])


@expecting("escaped")
async def test_words_of_a_hook_cannot_leave_their_frame(line: Any, tmp_path: Path) -> None:
    outcome, _, _ = await played(line, tmp_path, allow=True)

    text = outcome.result.text
    frames = FRAME.findall(text)
    if outcome.status is Status.OK:
        assert frames == ["<system-reminder", "</system-reminder"]
        assert text.startswith("fine\n<system-reminder>\n")
        assert text.endswith("\n</system-reminder>")
    else:
        assert frames == []
    assert "tool_use_error>" not in text.replace("&lt;/tool_use_error>", "")


@expecting("no_shell_injection")
async def test_what_a_tool_says_is_never_part_of_a_command_line(line: Any, tmp_path: Path) -> None:
    outcome, _, _ = await played(line, tmp_path, allow=True)

    assert outcome.status is Status.OK
    assert not (tmp_path / "PWNED").exists()


@expecting("strictest_wins")
@pytest.mark.proves("H2")
async def test_of_several_hooks_the_strictest_wins(line: Any, tmp_path: Path) -> None:
    outcome, _, asked = await played(line, tmp_path, allow=True)

    denied = any('"deny"' in json.dumps(each).replace("\\", "") for each in line["hooks"])
    assert (outcome.status, bool(asked)) == (Status.DENIED, not denied)


@expecting("no_marker")
@pytest.mark.proves("R9")
async def test_hooks_of_an_untrusted_project_do_not_run_and_are_reported(line: Any, tmp_path: Path) -> None:
    _, hooks, _ = await played(line, tmp_path, allow=True, trust="untrusted")

    assert not (tmp_path / "PWNED").exists()
    assert [problem.kind for problem in hooks.problems] == ["untrusted"]


@expecting("no_marker")
async def test_the_same_hooks_do_run_in_a_trusted_one(line: Any, tmp_path: Path) -> None:
    """So that the test above can fail."""
    await played(line, tmp_path, allow=True)

    assert (tmp_path / "PWNED").exists()
