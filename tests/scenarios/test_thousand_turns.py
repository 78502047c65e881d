"""A long conversation leaves nothing behind but itself."""

import gc

import pytest

from handrail import tool
from handrail.testing import say, use
from tests.scenarios.playing import an_agent, ending, played, scripted

pytestmark = [pytest.mark.anyio, pytest.mark.no_cover]


@tool(read_only=True, concurrency_safe=True)
async def look(number: int) -> str:
    """Look at something."""
    return f"This is {number}."


@pytest.mark.proves("X9")
async def test_a_thousand_turns_leave_no_more_behind_than_a_hundred() -> None:
    async def left_by(turns: int) -> int:
        model = scripted([*[[use(str(number), "look", number=number)] for number in range(turns)], [say("Done.")]])
        agent = an_agent(model, look)
        assert ending(await played(agent.run("Go."))).turns == turns + 1
        await agent.aclose()
        del agent, model
        gc.collect()
        return len(gc.get_objects())

    await left_by(100)
    few = await left_by(100)
    many = await left_by(1_000)

    assert many - few < 100
