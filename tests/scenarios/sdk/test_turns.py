"""Prompts, turns, sessions and limits."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    ThinkingBlock,
    ToolUseBlock,
    UserMessage,
)

from handrail.conversation.blocks import Text, Thinking
from handrail.testing.model_server import Reply
from tests.scenarios.sdk.driving import call, calls, end, only, results, say, system, texts, turn, world

pytestmark = pytest.mark.anyio


async def test_a_query_yields_the_beginning_the_answer_and_the_result(tmp_path: Path) -> None:
    async with world(tmp_path, say("Hello there.")) as w:
        messages = await w.ask("hi")

    first, answer, result = messages
    assert isinstance(first, SystemMessage) and isinstance(answer, AssistantMessage)
    assert first.data["cwd"] == str(w.cwd)
    assert {"Read", "Bash", "Agent"} <= {*first.data["tools"]}
    assert first.data["permissionMode"] == "default"
    assert first.data["apiKeySource"] == "ANTHROPIC_API_KEY"
    assert answer.message_id and answer.uuid and answer.session_id == first.data["session_id"]
    assert answer.usage == {
        "input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
    }  # fmt: skip
    assert isinstance(result, ResultMessage)
    assert (result.subtype, result.result, result.num_turns, result.is_error) == ("success", "Hello there.", 1, False)
    assert (result.stop_reason, result.terminal_reason) == ("end_turn", "completed")
    assert result.usage and result.usage["output_tokens"] == 5
    assert result.model_usage and set(result.model_usage["scripted"]) >= {"inputTokens", "costUSD", "contextWindow"}
    assert not [line for line in w.errors if "too old" in line]
