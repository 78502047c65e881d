"""The first day of an engineer who records and replays: tapes that survive, and tests of one line."""

from pathlib import Path

import pytest

from handrail import Agent
from handrail.conversation.blocks import Text
from handrail.providers.choose import ModelOptions, choose, open_provider
from handrail.testing import ScriptedModel
from handrail.testing.model_server import ModelServer, Reply

HELLO = Reply((Text("Hello."),), model="claude-opus-4-6")


@pytest.mark.anyio
async def test_a_provider_brings_the_name_of_its_model_into_request_price_and_window() -> None:
    async with ModelServer([HELLO]) as server:
        provider = open_provider(choose(ModelOptions(model="claude-opus-4-6", base_url=server.url), {}), {})
        async with Agent(provider, builtin_tools=False, env={}) as agent:
            answer = await agent.ask("hi")
            window = agent.session.context_usage()["maxTokens"]
        await provider.aclose()

    assert server.requests[0].body["model"] == agent.model == "claude-opus-4-6"
    assert answer.dollars
    assert window == 200_000


def test_an_agent_with_a_session_that_is_never_asked_leaves_no_file(tmp_path: Path) -> None:
    Agent(ScriptedModel([]), session="x", state_dir=tmp_path, env={})

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
