"""Commands in prompts: those that are built in, those that people wrote down, and what only looks like one."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolUse
from handrail.headless.engine import EngineOptions
from handrail.session.transcript import TranscriptOptions
from handrail.testing.model_server import Reply
from tests.headless.in_process import Line, of, peer

pytestmark = pytest.mark.anyio

NAMES = ["clear", "compact", "context", "cost", "help", "model", "usage"]


def say(text: str, **more: Any) -> Reply:
    return Reply((Text(text),), **more)


def words(lines: list[Line]) -> list[str]:
    return [block["text"] for line in lines if line["type"] == "assistant" for block in line["message"]["content"]]


async def test_built_in_commands_are_listed_and_answered_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "work" / ".claude" / "commands").mkdir(parents=True)
    (tmp_path / "work" / ".claude" / "commands" / "greet.md").write_text("---\ndescription: Greets\n---\nGreet $0.\n")
    (tmp_path / "work" / ".claude" / "commands" / "clear.md").write_text("Not what you think.\n")
    replies = [say("Hello.", model="claude-sonnet-4-6"), say("Other.")]
    async with peer(tmp_path, replies) as p:
        hello = await p.ask("initialize", hooks=None)
        told = {each["name"]: each for each in hello["response"]["commands"]}
        nothing = await p.turn("/cost")
        greeted = await p.turn("/greet Ada")
        cost, usage = await p.turn("/cost"), await p.turn("/usage")
        context = await p.turn("/context")
        listed = await p.turn("/help")
        empty = await p.turn('/model ""')
        changed = await p.turn("/model 'claude-other-1'")
        await p.turn("and now?")

        assert {*told} == {"greet", *NAMES}
        assert told["greet"] == {"name": "greet", "description": "Greets", "argumentHint": ""}
        assert told["clear"]["description"] == "Start a new, empty session"
        assert told["compact"]["argumentHint"]
        assert {*of(nothing, "init")[0]["slash_commands"]} == {"greet", *NAMES}
        assert words(nothing) == [nothing[-1]["result"]] == ["Nothing was asked of a model yet."]
        assert (nothing[-1]["subtype"], nothing[-1]["num_turns"], nothing[-1]["is_error"]) == ("success", 0, False)
        assert "Greet Ada." in p.server.requests[0].raw.decode()
        assert "claude-sonnet-4-6: 10 tokens in, 5 out" in cost[-1]["result"]
        assert cost[-1]["result"] == usage[-1]["result"]
        assert "15 of 200,000 tokens" in context[-1]["result"]
        assert "/greet: Greets" in listed[-1]["result"]
        assert "/compact [what to keep]: " in listed[-1]["result"]
        assert empty[-1]["result"].startswith('"" is not the name of a model.')
        assert changed[-1]["result"] == "The model is claude-other-1."
        assert [each.body["model"] for each in p.server.requests] == ["claude-sonnet-4-6", "claude-other-1"]
        assert greeted[-1]["result"] == "Hello."


@pytest.mark.parametrize(
    ("content", "more", "options"),
    [
        pytest.param("/cost", {"client_composed": True}, {}, id="a text that a program composed"),
        pytest.param("/cost", {}, {"spec": {"slash_commands": False}}, id="commands switched off"),
        pytest.param("/etc/hosts says what?", {}, {}, id="a path"),
        pytest.param("see /cost", {}, {}, id="a command that is not at the beginning"),
    ],
)
async def test_what_is_no_command_goes_to_the_model_as_it_is(
    tmp_path: Path, content: str, more: dict[str, Any], options: dict[str, Any]
) -> None:
    async with peer(tmp_path, [say("Words.")], **options) as p:
        lines = await p.turn(content, **more)

        assert lines[-1]["result"] == "Words."
        assert p.server.requests[0].body["messages"][-1]["content"][-1]["text"] == content
        assert bool(of(lines, "init")[0]["slash_commands"]) is (options == {})


async def test_a_conversation_is_summarised_on_request_with_the_wishes_of_the_person(tmp_path: Path) -> None:
    hook = {"matcher": "manual", "hookCallbackIds": ["pre"]}
    long = "The tulips are red. " * 400
    replies = [say(long), say("Yes."), say("Tulips: red.", input_tokens=7, output_tokens=3), say("Red.")]
    async with peer(tmp_path, replies) as p:
        await p.ask("initialize", hooks={"PreCompact": [hook]})
        await p.turn("Tell me of tulips.")
        await p.turn("Is that all?")
        p.prompt("/compact keep the colours")
        asked = (await p.until("control_request"))[-1]
        answer = {"subtype": "success", "request_id": asked["request_id"], "response": {}}
        p.say({"type": "control_response", "response": answer})
        lines = await p.until("result")
        after = await p.turn("Which colour?")

        given = asked["request"]["input"]
        assert (given["trigger"], given["custom_instructions"]) == ("manual", "keep the colours")
        [boundary] = of(lines, "compact_boundary")
        assert boundary["compact_metadata"]["trigger"] == "manual"
        assert (lines[-1]["is_error"], lines[-1]["usage"]["input_tokens"]) == (False, 7)
        assert "keep the colours" in p.server.requests[2].raw.decode()
        assert "Tulips: red." in p.server.requests[3].raw.decode()
        assert long not in p.server.requests[3].raw.decode()
        assert after[-1]["result"] == "Red."
        session = lines[-1]["session_id"]
    async with peer(tmp_path, [say("Still.")], session=_resumed(session)) as p:
        await p.turn("And now?")
        assert "Tulips: red." in p.server.requests[0].raw.decode()
        assert long not in p.server.requests[0].raw.decode()


async def test_a_summary_that_cannot_be_made_leaves_all_as_it_was_and_says_why(tmp_path: Path) -> None:
    block = {"hookCallbackIds": ["pre"]}
    long = "The tulips are red. " * 400
    replies = [say(long), say("Yes."), Reply(status=400, error="too tired"), say("On.")]
    async with peer(tmp_path, replies) as p:
        await p.ask("initialize", hooks={"PreCompact": [block]})
        empty = await p.turn("/compact")
        await p.turn("Tell me of tulips.")
        await p.turn("Is that all?")
        outcomes = []
        for answer in ({"decision": "block", "reason": "not today"}, {}):
            p.prompt("/compact")
            asked = (await p.until("control_request"))[-1]
            response = {"subtype": "success", "request_id": asked["request_id"], "response": answer}
            p.say({"type": "control_response", "response": response})
            outcomes.append((await p.until("result"))[-1]["result"])
        await p.turn("On?")

        assert "too short" in empty[-1]["result"]
        assert "hook" in outcomes[0]
        assert "too tired" in outcomes[1]
        assert long in json.loads(p.server.requests[-1].raw)["messages"][1]["content"][0]["text"]


async def test_a_cleared_conversation_goes_on_in_a_new_session_and_the_one_before_is_kept(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\n")
    read = Reply((ToolUse("t1", "Read", {"file_path": "a.txt"}),))
    edit = Reply((ToolUse("t2", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),))
    replies = [read, say("Tulips."), edit, say("Roses.")]
    async with peer(tmp_path, replies, options=EngineOptions()) as p:
        await p.ask("set_permission_mode", mode="acceptEdits")
        before = await p.turn("about tulips")
        cleared = await p.turn("/clear")
        usage = (await p.ask("get_context_usage"))["response"]
        after = await p.turn("about roses")

        assert cleared[-1]["is_error"] is False
        assert usage["totalTokens"] == 0
        assert "tulips" not in p.server.requests[2].raw.decode()
        assert str(tmp_path / "work") in p.server.requests[2].raw.decode()  # what stands at the beginning is told again
        [result] = [line for line in after if line["type"] == "user"]
        assert result["message"]["content"][0]["is_error"]  # nothing counts as read any more
        old, new = before[-1]["session_id"], after[-1]["session_id"]
        assert old != new
        assert [line["subtype"] for line in cleared if line["type"] == "system"] == ["conversation_reset", "init"]
        assert {line["session_id"] for line in cleared} == {new}
        assert (new in cleared[-1]["result"], f"--resume {old}" in cleared[-1]["result"]) == (True, True)
        assert of(after, "init")[0]["permissionMode"] == "acceptEdits"
    for session, told in ((new, (True, False)), (old, (False, True))):
        async with peer(tmp_path, [say("Lilies.")], session=_resumed(session)) as p:
            await p.turn("about lilies")
            said = p.server.requests[0].raw.decode()
            assert ("about roses" in said, "tulips" in said) == told


async def test_hooks_hear_of_a_cleared_conversation_as_the_end_of_one_session_and_the_start_of_another(
    tmp_path: Path,
) -> None:
    heard = []
    async with peer(tmp_path, [say("Tulips."), say("Roses.")]) as p:
        each = [{"hookCallbackIds": ["all"]}]
        p.say(_request("initialize", hooks={"SessionStart": each, "SessionEnd": each}))
        session = ""
        for prompt in ("about tulips", "/clear", "about roses"):
            p.prompt(prompt)
            asked = (await p.until("control_request"))[-1]
            given = asked["request"]["input"]
            heard.append((given["hook_event_name"], given.get("source") or given["reason"], given["session_id"]))
            response = {"subtype": "success", "request_id": asked["request_id"], "response": {}}
            p.say({"type": "control_response", "response": response})
            session = (await p.until("result"))[-1]["session_id"]

    before = heard[0][2]
    assert session != before
    assert heard == [
        ("SessionStart", "startup", before),
        ("SessionEnd", "clear", before),
        ("SessionStart", "clear", session),
    ]


async def test_clearing_ends_what_runs_in_the_background_and_says_so(tmp_path: Path) -> None:
    start = Reply((ToolUse("t1", "Bash", {"command": "tail -f /dev/null", "run_in_background": True}),))
    replies = [start, say("It runs."), say("Roses.")]
    flags = SettingsFlags(allowed=("Bash",), managed_policy=False)
    async with peer(tmp_path, replies, spec={"flags": flags}) as p:
        await p.ask("set_model", model="claude-other-1")
        first = await p.turn("/model")
        await p.turn("run it")
        cleared = await p.turn("/clear")
        after = await p.turn("about roses")

        assert "1 background task ended" in cleared[-1]["result"]
        assert of(p.seen, "task_notification")[-1]["status"] == "stopped"
        assert of(first, "init")[0]["model"] == of(after, "init")[0]["model"] == "claude-other-1"
        assert "tail -f" not in json.dumps(p.server.requests[-1].body["messages"])


def _request(subtype: str, **fields: Any) -> dict[str, Any]:
    return {"type": "control_request", "request_id": subtype, "request": {"subtype": subtype, **fields}}


def _resumed(session: str) -> TranscriptOptions:
    return TranscriptOptions(resume=session)


async def test_an_unknown_command_goes_to_the_model_which_is_told_which_commands_there_are(tmp_path: Path) -> None:
    async with peer(tmp_path, [say("Words.")]) as p:
        await p.turn("/costs a lot")

        *_, typed, note = p.server.requests[0].body["messages"][-1]["content"]
        assert typed["text"] == "/costs a lot"
        assert "There is no command /costs. The commands are: /clear, " in note["text"]
