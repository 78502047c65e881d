"""A tool that declares what it touches, and cannot for one input: file rules hold all the same."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Access, Agent, Outcome, tool
from handrail.events import CallFinished
from handrail.testing import ScriptedModel, say, use
from handrail.tools.function import FunctionTool

pytestmark = pytest.mark.anyio


def raises(path: str) -> Access:
    return Access.of(reads=str(Path(path).relative_to("/declared")))


async def awaits(path: str) -> Access:
    return Access.of(reads=path)


def gives_none(path: str) -> Any:
    return None


def reader(access: Any) -> FunctionTool:
    @tool(name="rel", read_only=True, access=access)
    def rel(path: str) -> str:
        """Read a file."""
        return Path(path).read_text()

    return rel


async def call(folder: Path, access: Any, **rules: Any) -> Outcome:
    (folder / ".env").write_text("SECRET")
    model = ScriptedModel([[use("1", "rel", path=str(folder / ".env"))], [say("Done.")]])
    agent = Agent(model, [reader(access)], cwd=folder, env={"HOME": str(folder)}, builtin_tools=False, **rules)
    with anyio.fail_after(20):
        async with agent:
            [outcome] = [event.outcome async for event in agent.run("Go.") if isinstance(event, CallFinished)]
    return outcome


@pytest.mark.proves("R2", "R3")
@pytest.mark.filterwarnings("ignore:coroutine 'awaits' was never awaited")
@pytest.mark.parametrize("access", [raises, awaits, gives_none], ids=["raises", "is async", "gives something else"])
@pytest.mark.parametrize("rules", [{}, {"mode": "acceptEdits"}], ids=["default", "acceptEdits"])
async def test_a_rule_that_names_the_tool_does_not_vouch_for_it(
    access: Any, rules: Mapping[str, Any], tmp_path: Path
) -> None:
    outcome = await call(tmp_path, access, allow=["rel"], deny=["Read(.env)"], **rules)

    assert outcome.status.value == "denied"
    assert "cannot declare which files this call touches" in outcome.result.text
    assert "SECRET" not in outcome.result.text


async def test_without_rules_about_files_it_runs_as_its_rule_says(tmp_path: Path) -> None:
    assert (await call(tmp_path, raises, allow=["rel"])).result.text == "SECRET"
