"""Questions beside the conversation."""

from typing import Any

import pytest

from handrail import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.request import History, Request
from handrail.conversation.stream import StreamFailure, StreamRetry, Usage, UsageUpdate
from handrail.loop.side_request import SideAnswer, side_request
from handrail.testing import say, use
from tests.scenarios.playing import scripted

pytestmark = pytest.mark.anyio

QUESTION = Request("m", History([UserMessage((Text("Sum it up."),))]))
BROKEN = StreamFailure("cut", "gone", retryable=True)


async def test_an_aside_is_the_text_and_what_it_used() -> None:
    used = Usage(10, 2)
    model: Any = scripted([[say("All "), use("1", "Read"), say("good."), UsageUpdate(used)]])

    blocks = (say("All "), use("1", "Read"), say("good."))
    assert await side_request(model, QUESTION) == SideAnswer("All good.", "scripted", used, blocks=blocks)


async def test_what_was_void_is_not_in_it() -> None:
    model: Any = scripted([[say("Half"), StreamRetry(BROKEN, 2, 0.0, "m"), say("Whole.")]])

    assert (await side_request(model, QUESTION)).text == "Whole."


async def test_a_failure_is_told_with_what_came_before() -> None:
    model: Any = scripted([[say("Half"), BROKEN]])

    assert await side_request(model, QUESTION) == SideAnswer("Half", "scripted", Usage(), BROKEN, (say("Half"),))
