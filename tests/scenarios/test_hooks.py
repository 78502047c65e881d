"""Hooks in whole runs: before a prompt, before stopping, around a summary, at both ends of a session."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent, Hooks, RunError, Text, ToolResult, tool
from handrail.conversation.messages import Attachment, UserMessage
from handrail.conversation.stream import Usage, UsageUpdate
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.news import HookNews
from handrail.hooks.specs import HookSource
from handrail.loop.compaction.plan import Compaction, CompactionRequest, SummaryPlan
from handrail.loop.events import Compacted, Notice, QueuedMessageTaken, RequestSent
from handrail.loop.state import Move, Why
from handrail.testing import say, use
from tests.processes.seen import alive, noted, read_pipe, stay
from tests.scenarios.playing import an_agent, ending, only, played, refused, roles, scripted

pytestmark = pytest.mark.anyio


@tool(read_only=True)
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


def commands(event: str, *lines: str, **more: Any) -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": line, **more} for line in lines]}]}


def agent_with(hooks: Hooks, folder: Path, *answers: Any, **options: Any) -> Agent:
    env = {"PATH": os.environ["PATH"], "HANDRAIL_STATE_DIR": str(folder / "state")}
    return an_agent(scripted(answers), shout, hooks=hooks, cwd=folder, env=env, **options)


def asked(section: Any) -> Hooks:
    return Hooks(section, environment=HookEnvironment(dict(os.environ)))


class Log:
    """Callbacks that keep what they were told and answer as they are told."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.told: list[tuple[str, Any]] = []

    def __call__(self, event: Any) -> Any:
        name = event["hook_event_name"]
        about = {"SessionStart": "source", "SessionEnd": "reason", "UserPromptSubmit": "prompt"}
        field = about.get(name, "stop_hook_active" if name == "Stop" else "trigger")
        self.told.append((name, event.get(field)))
        return self.answers.get(name)

    def hooks(self, *events: str) -> Hooks:
        return Hooks(callbacks={event: [self] for event in events})


def context(event: str, text: str) -> Any:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def texts(agent: Agent) -> list[str]:
    return [
        block.text
        for message in agent.messages
        if isinstance(message, UserMessage | Attachment)
        for block in message.content
        if isinstance(block, Text | ToolResult)
    ]


# The session


async def test_a_session_starts_once_and_ends_once_and_hooks_may_tell_the_model_something(tmp_path: Path) -> None:
    log = Log(
        SessionStart=context("SessionStart", "It is Friday."), UserPromptSubmit=context("UserPromptSubmit", "Be kind.")
    )
    async with agent_with(
        log.hooks("SessionStart", "UserPromptSubmit", "SessionEnd"), tmp_path, [say("Hello.")], [say("Bye.")]
    ) as agent:
        await agent.ask("Hi")
        await agent.ask("And?")

    assert log.told == [
        ("SessionStart", "startup"), ("UserPromptSubmit", "Hi"), ("UserPromptSubmit", "And?"), ("SessionEnd", "other"),
    ]  # fmt: skip
    assert texts(agent) == [
        "Hi",
        "<system-reminder>\nIt is Friday.\n</system-reminder>",
        "<system-reminder>\nBe kind.\n</system-reminder>",
        "And?",
        "<system-reminder>\nBe kind.\n</system-reminder>",
    ]
    assert not refused(agent.messages)


@pytest.mark.proves("R8")
async def test_a_session_that_is_over_leaves_no_hook_running(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    behind: Any = {"async": True}
    hooks = asked(commands("SessionStart", f"echo $$ >> pids; echo > ready; {stay(tmp_path)}", **behind))
    async with agent_with(hooks, tmp_path, [say("Hello.")]) as agent:
        await agent.ask("Hi")
        await anyio.to_thread.run_sync(read_pipe, tmp_path / "ready")

    assert noted(tmp_path)
    assert not any(map(alive, noted(tmp_path)))


# The prompt


async def test_a_blocked_prompt_is_never_asked_nor_kept(tmp_path: Path) -> None:
    hooks = asked(commands("UserPromptSubmit", "grep -q secret && { echo 'it holds a secret' >&2; exit 2; }; true"))
    agent = agent_with(hooks, tmp_path, [say("Hello.")])

    events = await played(agent.run("my secret"))
    ended = ending(events)

    assert (ended.move, ended.why, ended.turns) == (Move.ERROR, Why.PROMPT_BLOCKED, 0)
    assert ended.problem.startswith("the UserPromptSubmit hook ")
    assert ended.problem.endswith(" objects: it holds a secret")
    assert not only(events, RequestSent)
    assert list(agent.messages) == []
    with pytest.raises(RunError, match=r"because a hook blocked it: .* objects: it holds a secret"):
        await agent.ask("another secret")
    assert (await agent.ask("nothing")).text == "Hello."


async def test_a_hook_may_stop_the_run_at_the_prompt(tmp_path: Path) -> None:
    log = Log(UserPromptSubmit={"continue": False, "stopReason": "closed"})
    events = await played(agent_with(log.hooks("UserPromptSubmit"), tmp_path).run("Hi"))

    assert (ending(events).why, ending(events).problem, ending(events).is_error) == (Why.HOOK_STOPPED, "closed", False)


async def test_an_interrupted_prompt_hook_lets_no_prompt_pass(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    hooks = asked(commands("UserPromptSubmit", f"echo $$ >> pids; echo > ready; {stay(tmp_path)}"))
    agent = agent_with(hooks, tmp_path)
    run = agent.run("Hi")
    playing = asyncio.create_task(played(run))
    await anyio.to_thread.run_sync(read_pipe, tmp_path / "ready")
    run.interrupt()
    with anyio.fail_after(20):
        events = await playing

    assert ending(events).why is Why.ABORTED_STREAMING
    assert list(agent.messages) == []
    assert not any(map(alive, noted(tmp_path)))


async def test_messages_sent_meanwhile_go_past_the_same_hooks(tmp_path: Path) -> None:
    def guard(event: Any) -> Any:
        return {"decision": "block", "reason": "a secret"} if "secret" in event["prompt"] else None

    agent = agent_with(Hooks(callbacks={"UserPromptSubmit": [guard]}), tmp_path, [say("Hello.")], [say("Fine.")])
    run = agent.run("Hi")
    events = []
    async for event in run:
        events.append(event)
        if isinstance(event, RequestSent) and event.turn == 1:
            agent.send("my secret")
            agent.send("by the way")

    assert [taken.message for taken in only(events, QueuedMessageTaken)] == [UserMessage((Text("by the way"),))]
    assert [notice.text for notice in only(events, Notice)] == ["A queued message was withheld by a hook: a secret"]
    assert "secret" not in "".join(texts(agent))
    assert not refused(agent.messages)


async def test_a_message_that_no_hook_has_vouched_for_waits_for_the_next_prompt(tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def slow(event: Any) -> None:
        if event["prompt"] == "later" and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()

    agent = agent_with(Hooks(callbacks={"UserPromptSubmit": [slow]}), tmp_path, [say("Hello.")])
    run = agent.run("Hi")
    agent.send("later")
    playing = asyncio.create_task(played(run))
    with anyio.fail_after(20):
        await reached.wait()
        run.interrupt()
        await playing
        assert "later" not in texts(agent)
        await agent.ask("And?")

    assert texts(agent)[-2:] == ["later", "And?"]
    assert not refused(agent.messages)


# Stopping


async def test_a_hook_may_keep_the_run_going_and_says_why(tmp_path: Path) -> None:
    line = 'test -e done || { touch done; echo "the tests fail" >&2; exit 2; }'
    agent = agent_with(asked(commands("Stop", line)), tmp_path, [say("Done.")], [say("Now really.")])

    events = await played(agent.run("Go"))

    assert [sent.why for sent in only(events, RequestSent)] == [Why.PROMPT, Why.STOP_BLOCKED]
    assert (ending(events).why, ending(events).text) == (Why.COMPLETED, "Now really.")
    assert any(text.endswith(" objects: the tests fail\n</system-reminder>") for text in texts(agent))
    assert not refused(agent.messages)


async def test_a_hook_that_never_lets_go_is_overridden_after_eight_times(tmp_path: Path) -> None:
    log = Log(Stop={"decision": "block", "reason": "more"})
    agent = agent_with(log.hooks("Stop"), tmp_path, *[[say("Done.")]] * 9)

    events = await played(agent.run("Go"))

    assert (ending(events).why, ending(events).turns) == (Why.COMPLETED, 9)
    assert log.told == [("Stop", False), *[("Stop", True)] * 8]
    assert [news.message for news in only(events, HookNews) if news.stage == "message"] == [
        "hooks kept the run from stopping 8 times; now it stops"
    ]


async def test_a_limit_ends_a_run_that_a_hook_would_keep_going(tmp_path: Path) -> None:
    from handrail import Limits

    log = Log(Stop={"decision": "block", "reason": "more"})
    agent = agent_with(log.hooks("Stop"), tmp_path, [say("Done.")], limits=Limits(turns=1))

    assert ending(await played(agent.run("Go"))).why is Why.MAX_TURNS


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "PostToolBatch"])
async def test_a_hook_ends_the_run_with_its_calls_answered(event: str, tmp_path: Path) -> None:
    line = 'echo \'{"continue": false, "stopReason": "enough"}\''
    agent = agent_with(
        asked(commands(event, line)), tmp_path, [use("1", "shout", text="a"), use("2", "shout", text="b")]
    )

    events = await played(agent.run("Go"))

    assert (ending(events).why, ending(events).is_error, ending(events).problem) == (Why.HOOK_STOPPED, False, "enough")
    assert len(only(events, RequestSent)) == 1
    assert roles(agent.messages)[:3] == ["user", "assistant", "results"]
    assert not refused(agent.messages)


async def test_a_batch_of_calls_is_shown_to_hooks_as_a_whole(tmp_path: Path) -> None:
    agent = agent_with(
        asked(commands("PostToolBatch", "cat > batch.json")), tmp_path,
        [use("1", "shout", text="a"), use("2", "shout", text="b")], [say("Done.")],
    )  # fmt: skip
    await agent.ask("Go")

    calls = json.loads((tmp_path / "batch.json").read_text())["tool_calls"]
    assert [(call["tool_use_id"], call["tool_response"]) for call in calls] == [("1", "A"), ("2", "B")]


# Summaries


@pytest.mark.parametrize("blocked", [False, True])
async def test_hooks_are_asked_before_a_summary_and_told_after_it(blocked: bool, tmp_path: Path) -> None:
    log = Log(
        PreCompact={"decision": "block", "reason": "not now"} if blocked else None,
        SessionStart=context("SessionStart", "It is Friday."),
    )

    async def summarise() -> Compaction:
        return Compaction([Attachment("summary", (Text("So far: nothing."),))], "full")

    async def shorten(request: CompactionRequest) -> SummaryPlan | None:
        return SummaryPlan(summarise) if request.context_tokens >= 100 else None

    used = UsageUpdate(Usage(input_tokens=99, output_tokens=1))
    agent = agent_with(
        log.hooks("PreCompact", "PostCompact", "SessionStart"), tmp_path,
        [used, use("1", "shout", text="a")], [say("Done.")], compact=shorten,
    )  # fmt: skip

    events = await played(agent.run("Go"))

    after = [("PostCompact", "auto"), ("SessionStart", "compact")]
    assert log.told == [("SessionStart", "startup"), ("PreCompact", "auto"), *([] if blocked else after)]
    assert bool(only(events, Compacted)) != blocked
    assert sum("Friday" in text for text in texts(agent)) == 1


# Around the agent


async def test_a_hook_in_the_background_may_wake_the_agent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    hooks = asked(commands("PostToolUse", "read x < gate; echo 'tests fail' >&2; exit 2", asyncRewake=True))
    woken = asyncio.Event()
    agent = agent_with(hooks, tmp_path, [use("1", "shout", text="a")], [say("Done.")], [say("Fixed.")])
    post = hooks.on_wake

    def wake(news: HookNews) -> None:
        post(news)
        woken.set()

    hooks.on_wake = wake
    run = agent.run("Go")
    with anyio.fail_after(20):
        async for event in run:
            if isinstance(event, RequestSent) and event.turn == 2:
                await anyio.to_thread.run_sync((tmp_path / "gate").write_text, "go\n")
                await woken.wait()
    await agent.aclose()

    assert run.ended is not None
    assert run.ended.text == "Fixed."
    assert any(text.endswith(" objects: tests fail\n</system-reminder>") for text in texts(agent))


async def test_hooks_of_changed_settings_count_from_then_on(tmp_path: Path) -> None:
    async def guard(event: Any) -> Any:
        return {"systemMessage": "still here"}

    hooks = Hooks(callbacks={"PreToolUse": [guard]})
    calls = [[use("1", "shout", text="a")], [say("Done.")]]
    agent = agent_with(hooks, tmp_path, *calls, *calls)

    assert (await agent.ask("Go")).ended.denials == ()
    hooks.reload([(HookSource("user"), commands("PreToolUse", "exit 2"))])
    assert len((await agent.ask("Go")).ended.denials) == 1
    assert hooks.wants("PreToolUse")
    hooks.reload([])
    assert hooks.wants("PreToolUse")
