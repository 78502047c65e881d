"""Runs with the built-in tools and the rails of a folder: nothing in between is a fake but the model."""

from pathlib import Path
from typing import Any

import pytest

from handrail.testing.model import say, use
from handrail.tools.events import CallFinished
from handrail.tools.outcome import Status
from handrail.tools.pool import Deferral
from tests.scenarios.playing import an_agent, only, played, scripted

pytestmark = pytest.mark.anyio


@pytest.mark.proves("X1")
async def test_of_27_parallel_searches_one_finds_nothing_and_the_others_bring_their_own_results(tmp_path: Path) -> None:
    for number in range(27):
        (tmp_path / f"{number}.txt").write_text("nothing\n" if number == 13 else f"needle {number}\n")
    calls = [use(str(number), "Bash", command=f"grep needle {number}.txt") for number in range(27)]
    agent = an_agent(scripted([calls, [say("Done.")]]), builtin_tools=("Bash",), cwd=tmp_path)

    ended = {event.outcome.use.id: event.outcome for event in only(await played(agent.run("go")), CallFinished)}

    assert {key: outcome.status for key, outcome in ended.items()} == {str(n): Status.OK for n in range(27)}
    texts = {int(key): outcome.result.text for key, outcome in ended.items()}
    assert "exit code 1" in texts.pop(13)
    assert texts == {number: f"needle {number}" for number in range(27) if number != 13}


@pytest.mark.proves("C12")
async def test_the_first_request_holds_the_notebook_tool_back(tmp_path: Path) -> None:
    model = scripted([[say("Hello.")]])

    await played(an_agent(model, builtin_tools=True, cwd=tmp_path, deferral=Deferral(mode="on")).run("go"))

    request: Any = model.requests[0]
    deferred = {tool.name: tool.deferred for tool in request.tools}
    assert (deferred["NotebookEdit"], deferred["Read"]) == (True, False)
