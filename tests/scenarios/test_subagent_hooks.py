"""Hooks at both ends of a sub-agent: they are told who it is, tell it something, and keep it from stopping."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent
from handrail.conversation.blocks import Text, ToolUse
from handrail.hooks.specs import HookCallback
from handrail.providers.choose import ModelOptions
from handrail.session.spec import SessionHost, SessionSpec
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

DELEGATE = Reply((ToolUse("a", "Agent", {"description": "look", "prompt": "Look.", "subagent_type": "Explore"}),))


def said(text: str) -> Reply:
    return Reply((Text(text),))


async def worked(
    folder: Path, replies: Iterable[Reply], callbacks: Mapping[str, list[HookCallback]]
) -> tuple[str, list[str]]:
    """The last answer, and the requests as texts."""
    env = {"HOME": str(folder / "home"), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": "/nonexistent"}
    with anyio.fail_after(20):
        async with ModelServer(replies, strict=True) as server:
            spec = SessionSpec(folder, ModelOptions(provider="anthropic", model="m", base_url=server.url))
            async with Agent.from_spec(spec, env, SessionHost(hooks=callbacks)) as agent:
                answer = await agent.ask("go")
    return answer.text, [request.raw.decode() for request in server.requests]


@pytest.mark.proves("H2")
async def test_hooks_hear_of_a_sub_agent_and_may_send_it_on(tmp_path: Path) -> None:
    heard: list[Mapping[str, Any]] = []

    def listen(given: Mapping[str, Any]) -> dict[str, Any] | None:
        heard.append(given)
        if given["hook_event_name"] == "SubagentStart":
            return {"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "Mind the gap."}}
        if given["hook_event_name"] == "SubagentStop" and not given["stop_hook_active"]:
            return {"decision": "block", "reason": "Look again."}
        return None

    events = ("SessionStart", "UserPromptSubmit", "SubagentStart", "SubagentStop", "Stop")
    callbacks = {event: [HookCallback(listen)] for event in events}
    callbacks["SubagentStop"] = [HookCallback(listen, "Explore")]
    replies = [DELEGATE, said("Nothing here."), said("Found it."), said("Done.")]
    text, (_, begun, again, _) = await worked(tmp_path, replies, callbacks)

    assert text == "Done."
    assert [each["hook_event_name"] for each in heard] == [
        "SessionStart",
        "UserPromptSubmit",
        "SubagentStart",
        "SubagentStop",
        "SubagentStop",
        "Stop",
    ]
    inside = [each for each in heard if each["hook_event_name"].startswith("Subagent")]
    assert {each["agent_type"] for each in inside} == {"Explore"}
    assert len({each["agent_id"] for each in inside}) == 1
    assert [each.get("last_assistant_message") for each in inside] == [None, "Nothing here.", "Found it."]
    assert "Mind the gap." in begun
    assert "Look again." in again


async def test_hooks_of_other_kinds_of_sub_agents_are_not_asked(tmp_path: Path) -> None:
    heard: list[Mapping[str, Any]] = []
    callbacks = {event: [HookCallback(heard.append, "Plan")] for event in ("SubagentStart", "SubagentStop")}

    await worked(tmp_path, [DELEGATE, said("Nothing."), said("Done.")], callbacks)

    assert heard == []
