"""Hooks of settings files in whole sessions, at the moments beyond a single call."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent, Hooks
from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import Attachment
from handrail.hooks.news import HookNews
from handrail.loop.conversation_state import Mailbox
from handrail.loop.events import LoopEvent, RunEnded, RunStarted
from handrail.loop.run_hooks import Expansion
from handrail.loop.state import Why
from handrail.session.arguments import user_message
from handrail.session.transcript import TranscriptOptions
from handrail.testing import ScriptedModel, say
from handrail.testing.model_server import Reply
from handrail.tools.permission import Allow, Deny
from tests.hooks.place import DONE, Place, results, words

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def write(name: str = "a") -> Reply:
    return Reply((ToolUse(name, "Write", {"file_path": name, "content": "1"}),))


def bash(line: str, number: str = "1") -> Reply:
    return Reply((ToolUse(number, "Bash", {"command": line}),))


# Notification


async def test_a_question_is_announced_and_does_not_wait_for_it(place: Place) -> None:
    """The hook ends when the question is answered: whoever waited for the hook would wait forever."""
    os.mkfifo(place.project / "answered")
    place.write({"Notification": f"{place.note()}; read x < answered"})

    async def asked(_name: str, _given: Any, _question: Any) -> Deny:
        await anyio.to_thread.run_sync((place.project / "answered").write_text, "no\n")
        return Deny("no")

    await place.run(iter([write(), DONE]), can_use_tool=asked)

    [told] = place.told()
    assert told["notification_type"] == "permission_prompt"
    assert told["message"].startswith("Write(a) needs your permission: ")


@pytest.mark.parametrize(("matcher", "times"), [("permission_prompt", 1), ("idle_prompt", 0), ("", 1)])
async def test_announcements_are_matched_by_their_kind(place: Place, matcher: str, times: int) -> None:
    hook = {"type": "command", "command": place.note()}
    place.settings.write_text(json.dumps({"hooks": {"Notification": [{"matcher": matcher, "hooks": [hook]}]}}))

    async def asked(*_question: Any) -> Deny:
        with anyio.fail_after(20):
            while len(place.told()) < times:
                await anyio.sleep(0.01)
        return Deny("no")

    await place.run(iter([write(), DONE]), can_use_tool=asked)

    assert len(place.told()) == times


async def test_where_nobody_is_asked_nothing_is_announced(place: Place) -> None:
    place.write({"Notification": place.note(), "PermissionDenied": place.note()})

    await place.run(iter([write(), DONE]))

    [told] = place.told()
    assert (told["hook_event_name"], told["tool_name"]) == ("PermissionDenied", "Write")
    assert "no one to ask" in told["reason"]


async def test_a_denied_call_may_be_tried_again_if_a_hook_says_so(place: Place) -> None:
    output = {"hookSpecificOutput": {"hookEventName": "PermissionDenied", "retry": True}}
    place.write({"PermissionDenied": f"echo '{json.dumps(output)}'"})

    server = await place.run(iter([write(), DONE]))

    assert "may be tried again" in words(server)


# The mode


async def test_a_mode_that_an_answer_sets_is_what_hooks_are_told(place: Place) -> None:
    place.write({"PreToolUse": place.note()})
    mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}

    await place.run(iter([write("a"), write("b"), DONE]), can_use_tool=lambda *_: Allow(updated_permissions=(mode,)))

    assert [each["permission_mode"] for each in place.told()] == ["default", "acceptEdits"]


async def test_a_mode_that_a_hook_sets_is_what_hooks_are_told(place: Place) -> None:
    mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    decision = {"behavior": "allow", "updatedPermissions": [mode]}
    answer = json.dumps({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
    place.write({"PreToolUse": place.note(), "PermissionRequest": f"echo '{answer}'"})

    await place.run(iter([write("a"), write("b"), DONE]))

    assert [each["permission_mode"] for each in place.told()] == ["default", "acceptEdits"]


# In the background


def behind(event: str, line: str, **more: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": line, "async": True, **more}]}]}}


async def quiet(agent: Agent[Any]) -> None:
    """Between two prompts: until no hook runs any more."""
    await agent.session.hooks.wait_idle()


async def test_what_a_hook_in_the_background_says_goes_with_a_later_request(place: Place) -> None:
    output = json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "tests: green"}})
    place.settings.write_text(json.dumps(behind("PostToolUse", f"echo '{output}'")))
    replies = [bash("pwd"), DONE, DONE]

    server = await place.run(iter(replies), "go", "on", between=quiet)

    assert words(server).count("tests: green") == 1
    assert "<system-reminder>\\ntests: green\\n</system-reminder>" in words(server)


async def test_what_a_hook_in_the_background_says_to_the_person_comes_with_a_later_turn(place: Place) -> None:
    place.settings.write_text(json.dumps(behind("Stop", """echo '{"systemMessage": "saved"}'""")))
    runs: list[list[str]] = []

    def hear(event: LoopEvent) -> None:
        if isinstance(event, RunStarted):
            runs.append([])
        if isinstance(event, HookNews) and event.stage == "message":
            runs[-1].append(event.message)

    await place.run(iter([DONE, DONE]), "go", "on", hear=hear, between=quiet)

    assert runs == [[], ["saved"]]


async def test_a_hook_that_wakes_is_no_prompt_and_is_heard(place: Place) -> None:
    """Else it would be asked about its own words, and wake again, forever."""
    line = f"{place.note()}; echo go on >&2; exit 2"
    place.settings.write_text(json.dumps(behind("UserPromptSubmit", line, asyncRewake=True)))

    server = await place.run(iter([DONE] * 20), "one", "two", between=quiet)

    assert [each["prompt"] for each in place.told()] == ["one", "two"]
    assert "objects: go on" in words(server)


def test_what_wakes_keeps_a_run_going_only_so_often_between_two_prompts() -> None:
    mailbox, note = Mailbox(), Attachment("hook", (Text("go on"),))
    woken = 0
    for _ in range(20):
        mailbox.note(note, wakes=True)
        woken += len(mailbox)
        assert mailbox.take_notes() == (note,)
    mailbox.note(note)
    assert (woken, len(mailbox)) == (8, 0)

    mailbox.take_notes(prompted=True)
    mailbox.note(note, wakes=True)
    assert len(mailbox) == 1


# Commands of the user

DEPLOY = Expansion("deploy", "to staging", "/commands/deploy.md", "/deploy to staging")


async def worked(folder: Path, answer: Any) -> tuple[list[Any], RunEnded, str]:
    """A prompt that a command was put in full for, with a hook that answers so; and what was said in the end."""
    seen: list[Any] = []

    def look(event: Mapping[str, Any]) -> Any:
        seen.append(event)
        return answer if event["hook_event_name"] == "UserPromptExpansion" else None

    hooks = Hooks(callbacks={"UserPromptExpansion": [look], "UserPromptSubmit": [look]})
    model = ScriptedModel([[say("Done.")]])
    async with Agent(model, builtin_tools=False, cwd=folder, env={"HOME": str(folder)}, hooks=hooks) as agent:
        run = agent.session.conversation.run(user_message("Deploy it to staging, carefully."), expansion=DEPLOY)
        async for _ in run:
            pass
    assert run.ended is not None
    return seen, run.ended, str(agent.messages)


async def test_a_command_is_judged_before_the_prompt_that_it_stands_for(tmp_path: Path) -> None:
    said = {"hookSpecificOutput": {"hookEventName": "UserPromptExpansion", "additionalContext": "frozen today"}}
    seen, ended, messages = await worked(tmp_path, said)

    assert ended.why is Why.COMPLETED
    assert [each["hook_event_name"] for each in seen] == ["UserPromptExpansion", "UserPromptSubmit"]
    assert seen[0]["command_name"] == "deploy"
    assert (seen[0]["command_args"], seen[0]["prompt"]) == ("to staging", "/deploy to staging")
    assert seen[1]["prompt"] == "Deploy it to staging, carefully."
    assert "frozen today" in messages


async def test_a_command_that_a_hook_refuses_reaches_nobody(tmp_path: Path) -> None:
    seen, ended, messages = await worked(tmp_path, {"decision": "block", "reason": "not on Fridays"})

    assert (ended.why, ended.problem) == (Why.PROMPT_BLOCKED, "not on Fridays")
    assert [each["hook_event_name"] for each in seen] == ["UserPromptExpansion"]
    assert "staging" not in messages


# Other moments


async def test_a_failure_of_the_model_is_told(place: Place) -> None:
    place.write({"StopFailure": place.note(), "Stop": place.note()})

    await place.run(iter([Reply(status=401, error="bad key")]))

    [told] = place.told()
    assert (told["hook_event_name"], told["error"]) == ("StopFailure", "authentication_failed")


async def test_another_folder_is_told_and_variables_may_be_set_for_it(place: Place) -> None:
    (place.project / "inner").mkdir()
    place.write({"CwdChanged": f"""echo 'export WHERE=inside' > "$CLAUDE_ENV_FILE"; {place.note()}"""})

    replies = iter([bash("cd inner"), bash("echo $WHERE", "2"), DONE])
    server = await place.run(replies, can_use_tool=lambda *_: Allow())

    [told] = place.told()
    assert (told["old_cwd"], told["new_cwd"]) == (str(place.project), str(place.project / "inner"))
    assert results(server) == [(False, "inside")]


async def test_variables_of_the_start_reach_later_commands(place: Place) -> None:
    place.write({"SessionStart": """echo 'export GREETING="good day"' >> "$CLAUDE_ENV_FILE" """})

    server = await place.run(iter([bash("echo $GREETING"), DONE]), can_use_tool=lambda *_: Allow())

    assert results(server) == [(False, "good day")]


async def test_memory_files_are_told(place: Place) -> None:
    (place.project / "CLAUDE.md").write_text("Be brief.")
    place.write({"InstructionsLoaded": place.note()})

    await place.run(iter([bash("pwd"), DONE]), "go", between=quiet)

    [told] = place.told()
    assert told["file_path"] == str(place.project / "CLAUDE.md")
    assert (told["memory_type"], told["load_reason"]) == ("Project", "session_start")


async def test_a_session_may_begin_with_words_of_a_hook_and_get_a_name(place: Place) -> None:
    specific = {"hookEventName": "SessionStart", "initialUserMessage": "First look around.", "sessionTitle": "Tour"}
    place.write({"SessionStart": f"echo '{json.dumps({'hookSpecificOutput': specific})}'"})
    kept: list[Path] = []

    async def look(agent: Agent[Any]) -> None:
        assert agent.session.transcript is not None
        kept.append(agent.session.transcript.path)

    server = await place.run(iter([DONE]), "Then go.", between=look, transcript=TranscriptOptions(keep=True))

    said = words(server, 0)
    assert 0 < said.index("First look around.") < said.index("Then go.")
    assert '"title":"Tour"' in kept[0].read_text().replace(": ", ":")


async def test_what_has_no_effect_here_is_said(place: Place) -> None:
    specific = {"hookEventName": "SessionStart", "watchPaths": ["/x"]}
    place.write({"SessionStart": f"echo '{json.dumps({'hookSpecificOutput': specific})}'"})
    news: list[str] = []

    def hear(event: LoopEvent) -> None:
        if isinstance(event, HookNews) and event.stage == "message":
            news.append(event.message)

    await place.run(iter([DONE]), hear=hear)

    assert news == ["a hook's 'watchPaths' has no effect here"]
