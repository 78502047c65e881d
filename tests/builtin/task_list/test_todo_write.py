"""TodoWrite: the older list, when it is asked for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail.tools.context import AgentIdentity
from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = pytest.mark.anyio

OLD = {"CLAUDE_CODE_ENABLE_TASKS": "0"}


def step(content: str, status: str = "pending") -> dict[str, str]:
    return {"content": content, "status": status, "activeForm": f"{content}ing"}


async def written(session: Session, *steps: dict[str, str]) -> Any:
    outcome = await session.use("TodoWrite", {"todos": list(steps)}, session.rules())
    assert outcome.status is Status.OK
    return outcome.output


@pytest.mark.proves("N19")
async def test_the_whole_list_is_replaced_and_shown_as_a_checklist(tmp_path: Path) -> None:
    session = Session(tmp_path, OLD)
    first = [step("plan", "completed"), step("build", "in_progress"), step("test")]
    output = await written(session, *first)

    assert output.text == "The list was written: 3 steps, 1 done."
    assert output.data == {"oldTodos": [], "newTodos": first}
    assert (output.card.detail, output.card.body) == ("1 of 3 done", "[x] plan\n[>] building\n[ ] test")
    later = await written(Session(tmp_path, OLD), step("test", "completed"))
    assert later.data["oldTodos"] == first
    assert (later.card.detail, later.card.tone) == ("1 of 1 done", "good")


async def test_each_agent_has_its_own_list(tmp_path: Path) -> None:
    session = Session(tmp_path, OLD)
    await written(session, step("main"))
    session.run = replace(session.run, agent=AgentIdentity("a1", "helper"))
    output = await written(session, step("sub"))

    assert output.data["oldTodos"] == []


async def test_a_step_without_a_known_status_is_refused(tmp_path: Path) -> None:
    outcome = await Session(tmp_path, OLD).use("TodoWrite", {"todos": [step("a", "deleted")]})

    assert outcome.status is Status.ERROR
    assert "'todos.0.status'" in outcome.result.text
