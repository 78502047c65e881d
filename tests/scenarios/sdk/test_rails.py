"""Who has a say: permission callbacks, rules, modes and hooks of the program."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    HookEventMessage,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    UserMessage,
)
from claude_agent_sdk.types import PermissionRuleValue

from tests.scenarios.sdk.driving import Asked, call, calls, end, only, results, say, system, texts, turn, world

pytestmark = pytest.mark.anyio

Output = dict[str, Any]


def said(event: str, **fields: Any) -> Output:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


class Hook:
    """A hook that keeps what it was told, and gives its answers in order; the last one stays."""

    def __init__(self, *answers: Output) -> None:
        self.answers = list(answers)
        self.inputs: list[dict[str, Any]] = []

    async def __call__(self, given: Any, tool_use_id: str | None, context: Any) -> Any:
        self.inputs.append({**given, "asked_for": tool_use_id})
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def bash(number: int, command: str) -> Any:
    return calls(call(number, "Bash", command=command))


@pytest.mark.proves("O10")
async def test_a_callback_allows_refuses_and_changes_what_the_rules_leave_open(tmp_path: Path) -> None:
    def answer(_name: str, given: dict[str, Any]) -> PermissionResultAllow | PermissionResultDeny:
        command = given["command"]
        if "never" in command:
            return PermissionResultDeny(message="not on a Sunday")
        if "changed" in command:
            return PermissionResultAllow(updated_input={"command": "touch better"})
        return PermissionResultAllow()

    asked = Asked(answer)
    replies = (
        bash(1, "touch made"), say("A."), bash(2, "touch never"), say("B."), bash(3, "touch changed"), say("C."),
        calls(call(4, "Glob", pattern="*")), say("D."),
    )  # fmt: skip
    async with world(tmp_path, *replies) as w, w.client(can_use_tool=asked) as client:
        allowed = await turn(client, "one")
        refused = await turn(client, "two")
        await turn(client, "three")
        free = await turn(client, "four")

        assert {path.name for path in w.cwd.iterdir()} == {"made", "better"}
        name, given, context = asked.questions[0]
        assert (name, given, context.tool_use_id) == ("Bash", {"command": "touch made"}, "toolu_1")
        assert context.title
        assert context.decision_reason
        assert [each.type for each in context.suggestions] != []
        assert len(asked.questions) == 3  # reading in the folder needs nobody
    assert end(allowed).permission_denials == []
    assert results(refused)["toolu_2"][1]
    assert "not on a Sunday" in results(refused)["toolu_2"][0]
    denied = {"tool_name": "Bash", "tool_use_id": "toolu_2", "tool_input": {"command": "touch never"}}
    assert end(refused).permission_denials == [{**denied, "decision_reason": "not on a Sunday"}]
    assert [line["tool_use_id"] for line in system(refused, "permission_denied")] == ["toolu_2"]
    assert end(refused).is_error is False
    assert not results(free)["toolu_4"][1]


async def test_a_refusal_with_interrupt_ends_the_turn_and_not_the_conversation(tmp_path: Path) -> None:
    asked = Asked(lambda _name, _given: PermissionResultDeny(message="stop it", interrupt=True))
    async with world(tmp_path, bash(1, "touch x"), say("On we go.")) as w, w.client(can_use_tool=asked) as client:
        stopped = await turn(client, "one")
        after = await turn(client, "two")

        assert len(w.server.requests) == 2
    assert (end(stopped).subtype, end(stopped).terminal_reason) == ("error_during_execution", "aborted_tools")
    assert results(stopped)["toolu_1"][1]
    assert end(after).result == "On we go."


async def test_rules_that_come_with_a_yes_hold_from_then_on_where_they_belong(tmp_path: Path) -> None:
    def rule(destination: Any, text: str) -> PermissionUpdate:
        value = PermissionRuleValue(tool_name="Bash", rule_content=text)
        return PermissionUpdate(type="addRules", rules=[value], behavior="allow", destination=destination)

    def answer(_name: str, given: dict[str, Any]) -> PermissionResultAllow | PermissionResultDeny:
        destination = "localSettings" if "mkdir" in given["command"] else "session"
        return PermissionResultAllow(updated_permissions=[rule(destination, given["command"].split()[0] + " *")])

    asked = Asked(answer)
    replies = [bash(1, "touch a"), bash(2, "touch b"), bash(3, "mkdir c"), bash(4, "mkdir d"), say("Done.")]
    async with world(tmp_path, *replies, bash(5, "mkdir e"), bash(6, "touch f"), say("Again.")) as w:
        await w.ask("go", can_use_tool=asked)
        assert [given["command"] for _, given, _ in asked.questions] == ["touch a", "mkdir c"]
        assert {path.name for path in w.cwd.iterdir()} >= {"a", "b", "c", "d"}
        kept = json.loads((w.cwd / ".handrail" / "settings.local.json").read_text())
        assert kept["permissions"]["allow"] == ["Bash(mkdir *)"]

        await w.ask("go on", can_use_tool=asked, extra_args={"trust": None})
        assert [given["command"] for _, given, _ in asked.questions][2:] == ["touch f"]


async def test_a_callback_that_fails_or_gives_nonsense_is_a_no(tmp_path: Path) -> None:
    async def broken(_name: str, _given: Any, _context: Any) -> Any:
        raise RuntimeError("out of order")

    async def odd(_name: str, _given: Any, _context: Any) -> Any:
        return "yes"

    for callback in (broken, odd):
        async with world(tmp_path, bash(1, "touch x"), say("Well.")) as w:
            messages = await w.ask("go", can_use_tool=callback)
            assert results(messages)["toolu_1"][1]
            assert not (w.cwd / "x").exists()


async def test_rules_and_modes_decide_without_a_question(tmp_path: Path) -> None:
    writing = [calls(call(n, "Write", file_path=f"{n}.txt", content="x")) for n in (3, 4, 5)]
    replies = [bash(1, "touch a"), bash(2, "mkdir b"), say("A."), writing[0], say("B."), writing[1], say("C.")]
    asked = Asked(lambda _name, _given: PermissionResultDeny(message="no"))
    options: dict[str, Any] = {"allowed_tools": ["Bash(touch *)"], "disallowed_tools": ["Bash(mkdir *)", "Glob"]}
    async with (
        world(tmp_path, *replies, writing[2], say("D.")) as w,
        w.client(can_use_tool=asked, **options) as client,
    ):
        first = await turn(client, "one")
        second = await turn(client, "two")
        await client.set_permission_mode("acceptEdits")
        third = await turn(client, "three")
        await client.set_permission_mode("plan")
        fourth = await turn(client, "four")

        assert (results(first)["toolu_1"][1], results(first)["toolu_2"][1]) == (False, True)
        assert [name for name, _, _ in asked.questions] == ["Write", "Write"], "the second in plan mode"
        assert results(second)["toolu_3"][1]
        assert not results(third)["toolu_4"][1]
        assert results(fourth)["toolu_5"][1]
        assert {path.name for path in w.cwd.iterdir()} == {"a", "4.txt"}
        assert "Glob" not in system(first, "init")[0]["tools"]
        modes = [system(each, "init")[0]["permissionMode"] for each in (first, third, fourth)]
        assert modes == ["default", "acceptEdits", "plan"]


@pytest.mark.proves("B9", "B10")
async def test_the_way_it_is_run_decides_which_tools_there_are(tmp_path: Path) -> None:
    agent = calls(call(1, "Agent", description="Look", prompt="Look", subagent_type="Explore", run_in_background=False))
    async with world(tmp_path, agent, *map(say, "ABCDE")) as w:
        full = system(await w.ask("one"), "init")[0]["tools"]
        sub_agent = [each["name"] for each in w.server.requests[1].body["tools"]]
        simple = system(await w.ask("two", env={"CLAUDE_CODE_SIMPLE": "1"}), "init")[0]["tools"]
        plan = system(await w.ask("three", permission_mode="plan"), "init")[0]["tools"]
        nothing = system(await w.ask("four", tools=[]), "init")[0]["tools"]

    assert {*simple} == {"Bash", "Edit", "Glob", "Grep", "Read", "Write"}
    assert {*simple} | {"Agent", "ToolSearch"} <= {*full}
    assert {*sub_agent} == {"Glob", "Grep", "Read"}
    assert "Write" not in plan
    assert {"Read", "Glob", "Grep"} <= {*plan}
    assert nothing == []


async def test_settings_count_by_their_source_and_folders_can_be_added(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "far.txt").write_text("far away\n")
    reads = [calls(call(n, "Read", file_path=str(elsewhere / "far.txt"))) for n in range(3)]
    ends = [say("A."), say("B."), say("C.")]
    script = [reply for pair in zip(reads, ends, strict=True) for reply in pair]
    async with world(tmp_path, *script) as w:
        (w.home / ".claude").mkdir()
        (w.home / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": ["Read"]}}))
        denied = await w.ask("one", add_dirs=[elsewhere])
        outside = await w.ask("two", setting_sources=["project"])
        added = await w.ask("three", setting_sources=[], add_dirs=[elsewhere])

    assert "Read" not in system(denied, "init")[0]["tools"]
    assert results(outside)["toolu_1"][1]
    assert "far away" in results(added)["toolu_2"][0]


async def test_hooks_before_a_call_block_change_and_stop(tmp_path: Path) -> None:
    hook = Hook(
        said("PreToolUse", permissionDecision="deny", permissionDecisionReason="no moon today"),
        said(
            "PreToolUse", permissionDecision="allow", updatedInput={"command": "touch other"}, additionalContext="ctx-1"
        ),
        {"continue_": False, "stopReason": "enough for today"},
    )
    never = Hook({"decision": "block", "reason": "wrong tool"})
    hooks = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[hook]), HookMatcher(matcher="Write", hooks=[never])]}
    replies = (bash(1, "touch moon"), bash(2, "touch one"), say("A."), bash(3, "touch three"), say("B."))
    async with world(tmp_path, *replies) as w, w.client(hooks=hooks) as client:
        first = await turn(client, "one")
        stopped = await turn(client, "two")
        after = await turn(client, "three")

        assert {path.name for path in w.cwd.iterdir()} == {"other"}
        assert "ctx-1" in w.said(2)
        assert "no moon today" in results(first)["toolu_1"][0]
        assert not results(first)["toolu_2"][1]
        assert (end(stopped).subtype, end(stopped).terminal_reason) == ("success", "hook_stopped")
        assert end(after).result == "B."
        told = hook.inputs[0]
        assert (told["hook_event_name"], told["tool_name"], told["asked_for"]) == ("PreToolUse", "Bash", "toolu_1")
        assert told["tool_input"] == {"command": "touch moon"}
        assert told["session_id"] == end(first).session_id
        assert Path(told["transcript_path"]).is_file()
        assert never.inputs == []


async def test_a_hook_puts_another_output_in_the_place_of_the_tools(tmp_path: Path) -> None:
    post = Hook(said("PostToolUse", updatedToolOutput={"filenames": ["***.txt"]}))
    looking = calls(call(1, "Glob", pattern="*.txt"))
    async with (
        world(tmp_path, looking, say("Done.")) as w,
        w.client(hooks={"PostToolUse": [HookMatcher(hooks=[post])]}) as client,
    ):
        (w.cwd / "hunter2.txt").touch()
        first = await turn(client, "go")

        assert "hunter2.txt" in str(post.inputs[0]["tool_response"])
        assert "hunter2" not in w.said(1)
    assert results(first)["toolu_1"] == ("***.txt", False)
    assert "hunter2" not in Path(post.inputs[0]["transcript_path"]).read_text()


async def test_hooks_around_prompts_results_and_the_end(tmp_path: Path) -> None:
    prompts = Hook(
        said("UserPromptSubmit", additionalContext="It is Monday."), {"decision": "block", "reason": "no secrets here"}
    )
    stop = Hook({"decision": "block", "reason": "not done yet"}, {})
    post = Hook(said("PostToolUse", additionalContext="checked by a hook"))
    failure = Hook(said("PostToolUseFailure", additionalContext="seen to fail"))
    hooks = {
        "UserPromptSubmit": [HookMatcher(hooks=[prompts])],
        "Stop": [HookMatcher(hooks=[stop])],
        "PostToolUse": [HookMatcher(hooks=[post])],
        "PostToolUseFailure": [HookMatcher(hooks=[failure])],
    }
    looking = calls(call(1, "Glob", pattern="*"), call(2, "Read", file_path="missing"))
    async with (
        world(tmp_path, looking, say("Done?"), say("Done.")) as w,
        w.client(hooks=hooks, include_hook_events=True) as client,
    ):
        first = await turn(client, "go")
        blocked = await turn(client, "the password is x")

        assert "It is Monday." in w.said(0)
        assert "checked by a hook" in w.said(1)
        assert "seen to fail" in w.said(1)
        assert "not done yet" in w.said(2)
        assert len(w.server.requests) == 3
    assert texts(first) == ["Done?", "Done."]
    assert (end(blocked).num_turns, end(blocked).is_error) == (0, True)
    assert "no secrets here" in (end(blocked).result or "")
    assert {each.hook_event_name for each in only(first, HookEventMessage)} == {*hooks}
    assert stop.inputs[0]["last_assistant_message"] == "Done?"
    assert post.inputs[0]["tool_response"] is not None
    assert [failure.inputs[0]["tool_use_id"], post.inputs[0]["tool_use_id"]] == ["toolu_2", "toolu_1"]


async def test_a_guard_that_hangs_or_fails_lets_nothing_through(tmp_path: Path) -> None:
    async def hangs(_given: Any, _id: Any, _context: Any) -> Any:

        await anyio.sleep_forever()

    async def fails(_given: Any, _id: Any, _context: Any) -> Any:
        raise RuntimeError("the guard is ill")

    asked = Asked(lambda _name, _given: PermissionResultAllow())
    allowing: dict[str, Any] = {"allowed_tools": ["Bash(touch *)"]}
    guards: list[tuple[Any, Any]] = [(hangs, None), (fails, None), (fails, "block")]
    for guard, strict in guards:
        matcher = HookMatcher(matcher="Bash", hooks=[guard], timeout=0.3, on_failure=strict)
        more = {"can_use_tool": asked} if strict else {}
        async with world(tmp_path, bash(1, "touch x"), say("Well.")) as w:
            messages = await w.ask("go", hooks={"PreToolUse": [matcher]}, **allowing, **more)
            assert results(messages)["toolu_1"][1]
            assert not (w.cwd / "x").exists()
    assert asked.questions == []  # whose failure blocks is not to be asked about


async def test_a_hook_may_answer_in_place_of_the_callback(tmp_path: Path) -> None:
    async def slow(_name: str, _given: Any, _context: Any) -> Any:

        await anyio.sleep_forever()

    hook = Hook(said("PermissionRequest", decision={"behavior": "allow"}))
    hooks = {"PermissionRequest": [HookMatcher(hooks=[hook])]}
    async with world(tmp_path, bash(1, "touch x"), say("Done.")) as w:
        messages = await w.ask("go", hooks=hooks, can_use_tool=slow)

        assert end(messages).result == "Done."
        assert (w.cwd / "x").exists()
        assert hook.inputs[0]["tool_input"] == {"command": "touch x"}


async def test_files_go_back_to_what_they_were_before_a_prompt(tmp_path: Path) -> None:
    replies = [calls(call(n, "Write", file_path="a.txt", content=f"version {n}\n")) for n in (1, 2)]
    script = (replies[0], say("A."), calls(call(9, "Read", file_path="a.txt")), replies[1], say("B."))
    options: dict[str, Any] = {"permission_mode": "acceptEdits", "extra_args": {"replay-user-messages": None}}
    async with world(tmp_path, *script) as w, w.client(enable_file_checkpointing=True, **options) as client:
        await turn(client, "one")
        second = await turn(client, "two")
        assert (w.cwd / "a.txt").read_text() == "version 2\n"
        prompt = only(second, UserMessage)[0]
        assert prompt.uuid

        await client.rewind_files(prompt.uuid)

        assert (w.cwd / "a.txt").read_text() == "version 1\n"
        assert len(only(second, AssistantMessage)) == 3


@pytest.mark.proves("O10", "H2")
@pytest.mark.parametrize("words", ["And now?", ""])
async def test_a_hook_puts_a_call_off_and_decides_when_the_session_is_resumed(tmp_path: Path, words: str) -> None:
    later = Hook(said("PreToolUse", permissionDecision="defer"), said("PreToolUse", permissionDecision="allow"))
    hooks: Any = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[later])]}
    async with world(tmp_path, bash(1, "touch made"), say("Done.")) as w:
        first = await w.ask("go", hooks=hooks)
        assert (end(first).stop_reason, end(first).is_error, results(first)) == ("tool_deferred", False, {})
        put_off = end(first).deferred_tool_use
        assert put_off is not None
        assert (put_off.id, put_off.name, put_off.input) == ("toolu_1", "Bash", {"command": "touch made"})
        assert [*w.cwd.iterdir()] == []

        second = await w.ask(words, hooks=hooks, resume=end(first).session_id)
        assert (end(second).result, results(second)["toolu_1"][1]) == ("Done.", False)
        assert [path.name for path in w.cwd.iterdir()] == ["made"]
        assert [each["asked_for"] for each in later.inputs] == ["toolu_1"] * 2
        assert ("And now?" in w.said()) is bool(words)


async def test_a_long_conversation_takes_up_what_was_put_off_with_the_next_prompt(tmp_path: Path) -> None:
    later = Hook(said("PreToolUse", permissionDecision="defer"), said("PreToolUse", permissionDecision="allow"))
    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[later])]}
    async with world(tmp_path, bash(1, "touch made"), say("Done.")) as w, w.client(hooks=hooks) as client:
        first = await turn(client, "one")
        second = await turn(client, "two")

        assert (end(first).stop_reason, end(second).result) == ("tool_deferred", "Done.")
        assert [path.name for path in w.cwd.iterdir()] == ["made"]
