"""Hooks around a call, with real commands: what they say goes through the real pipeline and the real gate."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from handrail import Hooks, Output, Policy, Rails, RunContext, ToolExecutor, ToolUse, tool
from handrail.builtin.bash.tool import Bash
from handrail.dispatch.approval.decide import conditions_left_to_tools
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.call_hooks import CallHooks, absolute
from handrail.dispatch.gate import Gate, WithoutPolicy
from handrail.dispatch.results import ResultStore
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.news import HookNews
from handrail.hooks.specs import HookSource
from handrail.permissions import shell_case
from handrail.permissions.command_parts import parts_of
from handrail.permissions.facts import Evidence
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.session.services import default_services
from handrail.shell import analysis
from handrail.shell.model import Analysis
from handrail.shell.parser import Parser
from handrail.testing import FixedApprover
from handrail.tools.abort import AbortSignal
from handrail.tools.context import ToolContext
from handrail.tools.events import CallProgress
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tools.permission import Allow, Decision, Deny, Verdict
from handrail.tools.pool import AnyTool, Ingredients, assemble
from handrail.tools.request import CallRequest
from handrail.tools.stub import load_tool
from tests.hooks.judge import RuleGate

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # real processes need the real clock


ran: list[str] = []


@tool(name="Bash", runs="command", subject="command")
async def shell(command: str) -> str:
    """Would run a command."""
    ran.append(command)
    return f"output of {command}"


@tool(read_only=True, reads="path", subject="path")
async def look(path: str) -> Output:
    """Looks at something, and answers with data too."""
    return Output(text="seen", data={"path": path, "lines": 3})


@tool(read_only=True)
async def fail() -> str:
    """Fails."""
    raise ValueError("broken")


@tool(read_only=True)
async def quiet() -> Output:
    """Fails with an output."""
    return Output(text="exit code 1", is_error=True)


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()


def hook(line: str, event: str = "PreToolUse", **more: Any) -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": line, **more}]}]}


def prints(value: Any, event: str = "PreToolUse") -> dict[str, Any]:
    return hook(f"cat >/dev/null; printf %s '{json.dumps(value)}'", event)


def says(event: str = "PreToolUse", **specific: Any) -> dict[str, Any]:
    return prints({"hookSpecificOutput": {"hookEventName": event, **specific}}, event)


def around(*sections: Any, family: Any = ".handrail") -> CallHooks:
    sources = [(HookSource("user", family), section) for section in sections]
    return CallHooks(Hooks(sources=sources, environment=HookEnvironment(dict(os.environ))))


async def outcomes(calls: Sequence[ToolUse], hooks: CallHooks, judge: Gate, folder: Path) -> tuple[Outcome, ...]:
    pool = assemble(Ingredients(custom=(shell, look, fail, quiet)))
    async with ToolExecutor(
        pool, RunContext(folder), ResultStore(folder / "big"), rails=Rails(judge, hooks)
    ) as executor:
        for call in calls:
            executor.add(call)
        return tuple([outcome async for outcome in executor.rest()])


async def outcome_of(hooks: CallHooks, judge: Gate, folder: Path, *, name: str = "Bash", **given: Any) -> Outcome:
    given = given or {"command": "make"}
    [outcome] = await outcomes([ToolUse("1", name, given)], hooks, judge, folder)
    return outcome


NO = {"permissionDecision": "deny", "permissionDecisionReason": "not on Fridays"}


@pytest.mark.proves("G1", "H1")
async def test_a_hook_that_says_no_keeps_the_tool_from_running(tmp_path: Path) -> None:
    outcome = await outcome_of(around(says(**NO)), RuleGate(tmp_path, FixedApprover(), allow=["Bash"]), tmp_path)

    assert (outcome.status, ran) == (Status.DENIED, [])
    assert outcome.result.text.startswith("Bash('make') was refused: not on Fridays.")
    assert outcome.decision is not None
    assert outcome.decision.opinions[0].source == "user settings: hooks.PreToolUse[0].hooks[0]"


@pytest.mark.parametrize(
    ("rules", "asked", "status"),
    [
        pytest.param({}, [], Status.OK, id="a yes skips the question"),
        pytest.param({"deny": ["Bash(make *)"]}, [], Status.DENIED, id="but no deny rule"),
        pytest.param({"ask": ["Bash(make *)"]}, ["Bash('make')"], Status.OK, id="and no ask rule"),
    ],
)
@pytest.mark.proves("G10", "H2", "R3")
async def test_a_hooks_yes_outweighs_neither_deny_nor_ask_rules(
    rules: dict[str, list[str]], asked: list[str], status: Status, tmp_path: Path
) -> None:
    person = FixedApprover()
    outcome = await outcome_of(around(says(permissionDecision="allow")), RuleGate(tmp_path, person, **rules), tmp_path)

    assert (outcome.status, person.asked) == (status, asked)


@pytest.mark.parametrize(
    "section",
    [
        pytest.param(hook("./missing.sh"), id="not there"),
        pytest.param(hook("exec sleep 600", timeout=0.1), id="too slow"),
        pytest.param(hook('echo \'{"decision": "approve"\''), id="malformed"),
        pytest.param(hook("exit 1"), id="exit 1"),
        pytest.param({"PreToolUse": [{"matcher": "(", "hooks": []}]}, id="a matcher that is none"),
        pytest.param({"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "ok?"}]}]}, id="a type we do not have"),
    ],
)
@pytest.mark.parametrize("somebody", [True, False])
@pytest.mark.proves("R2", "H2", "R12")
async def test_a_hook_that_cannot_run_is_asked_about_and_with_nobody_there_it_is_a_no(
    section: Any, somebody: bool, tmp_path: Path
) -> None:
    person = FixedApprover(allow=True)
    judge = RuleGate(tmp_path, person if somebody else None, allow=["Bash"])

    outcome = await outcome_of(around(says(permissionDecision="allow"), section), judge, tmp_path)

    assert person.asked == (["Bash('make')"] if somebody else [])
    assert outcome.status is (Status.OK if somebody else Status.DENIED)
    assert somebody or "hook" in outcome.result.text
    assert somebody or "there is no one to ask" in outcome.result.text


@pytest.mark.proves("H3", "F13")
async def test_a_rewritten_input_is_what_permission_sees_and_what_runs(tmp_path: Path) -> None:
    rewriting = around(says(updatedInput={"command": "make -n"}))

    allowed = await outcome_of(rewriting, RuleGate(tmp_path, allow=["Bash(make -n)"]), tmp_path)
    denied = await outcome_of(
        around(says(updatedInput={"command": "rm -r src"}, permissionDecision="allow")),
        RuleGate(tmp_path, FixedApprover(), allow=["Bash(make)"], deny=["Bash(rm *)"]),
        tmp_path,
    )

    assert (allowed.status, allowed.result.text) == (Status.OK, "output of make -n")
    assert denied.status is Status.DENIED
    assert ran == ["make -n"]


async def test_a_rewritten_input_is_checked_like_the_first(tmp_path: Path) -> None:
    outcome = await outcome_of(around(says(updatedInput={"cmd": "ls"})), RuleGate(tmp_path, allow=["Bash"]), tmp_path)

    assert (outcome.cause, ran) == (Cause.INVALID_INPUT, [])


async def test_of_two_rewritings_the_last_in_the_settings_counts_and_a_yes_for_the_other_is_void(
    tmp_path: Path,
) -> None:
    first = says(updatedInput={"command": "one"}, permissionDecision="allow")
    last = says(updatedInput={"command": "two"})

    person = FixedApprover()
    await outcome_of(around(first, last), RuleGate(tmp_path, person), tmp_path)
    await outcome_of(around(last, first), RuleGate(tmp_path), tmp_path)

    assert person.asked == ["Bash('two')"]
    assert ran == ["two", "one"]


@pytest.mark.proves("R2")
async def test_a_hook_that_stops_the_run_keeps_its_tool_and_later_ones_from_running(tmp_path: Path) -> None:
    stopping = prints({"continue": False, "stopReason": "enough"})
    stopping["PreToolUse"][0]["matcher"] = "Bash"
    calls = [ToolUse("1", "Bash", {"command": "a"}), ToolUse("2", "look", {"path": "x"})]

    first, second = await outcomes(calls, around(stopping), RuleGate(tmp_path, allow=["Bash"]), tmp_path)

    assert ran == []
    assert (first.cause, first.stop) == (Cause.HOOK_STOPPED, "enough")
    assert first.result.text == "Bash('a') was not run: a hook stopped the run (enough)."
    assert second.cause is Cause.HOOK_STOPPED


@pytest.mark.proves("F8", "H4")
async def test_after_a_call_hooks_get_its_output_and_may_talk_to_the_model(tmp_path: Path) -> None:
    seen = hook("cat > after.json; echo careful >&2; exit 2", "PostToolUse")
    outcome = await outcome_of(around(seen), RuleGate(tmp_path), tmp_path, name="look", path="x")

    told, where = json.loads((tmp_path / "after.json").read_text()), str(tmp_path / "x")
    assert (told["tool_response"], told["tool_input"]) == ({"path": where, "lines": 3}, {"path": where})
    assert isinstance(told["duration_ms"], int)
    assert outcome.status is Status.OK
    assert outcome.result.text.startswith("seen\n<system-reminder>\nthe PostToolUse hook 'cat > after.json; ")
    assert outcome.result.text.endswith("' objects: careful\n</system-reminder>")


@pytest.mark.parametrize(("name", "error"), [("fail", "ValueError: broken"), ("quiet", "exit code 1")])
async def test_a_call_that_failed_is_another_event(name: str, error: str, tmp_path: Path) -> None:
    hooks = around(hook("cat > failed.json", "PostToolUseFailure"), hook("touch succeeded", "PostToolUse"))
    pool = assemble(Ingredients(custom=(fail, quiet)))
    rails = Rails(RuleGate(tmp_path), hooks)
    async with ToolExecutor(pool, RunContext(tmp_path), ResultStore(tmp_path / "big"), rails=rails) as executor:
        executor.add(ToolUse("1", name, {}))
        await anext(executor.rest())

    assert error in json.loads((tmp_path / "failed.json").read_text())["error"]
    assert not (tmp_path / "succeeded").exists()


@pytest.mark.parametrize(
    ("name", "given", "new", "text"),
    [
        pytest.param("Bash", {"command": "make"}, "all well", "all well", id="a text for a text"),
        pytest.param("look", {"path": "x"}, {"path": "***"}, '{"path":"***"}', id="data for data"),
        pytest.param("look", {"path": "x"}, "all well", "all well", id="a text for data"),
        pytest.param("look", {"path": "x"}, [{"type": "text", "text": "all well"}], "all well", id="blocks for data"),
        pytest.param("look", {"path": "x"}, {"other": 1}, "seen", id="another shape is ignored"),
        pytest.param("look", {"path": "x"}, [1], "seen", id="another list is ignored"),
        pytest.param("Bash", {"command": "make"}, {"stdout": "x"}, "output of make", id="data for a text is ignored"),
    ],
)
async def test_a_hook_may_put_another_output_in_place(
    name: str, given: dict[str, Any], new: Any, text: str, tmp_path: Path
) -> None:
    changing = around(says("PostToolUse", updatedToolOutput=new))
    outcome = await outcome_of(changing, RuleGate(tmp_path, allow=["Bash"]), tmp_path, name=name, **given)

    assert outcome.result.text == text
    assert outcome.output is not None
    assert text in ("seen", "output of make") or outcome.output.data in (None, new)


async def test_a_hook_after_a_call_may_stop_the_run(tmp_path: Path) -> None:
    outcome = await outcome_of(
        around(prints({"continue": False, "stopReason": "look first"}, "PostToolUse")), RuleGate(tmp_path), tmp_path,
        name="look", path="x",
    )  # fmt: skip

    assert (outcome.status, outcome.stop) == (Status.OK, "look first")


async def test_hooks_are_news_of_the_call(tmp_path: Path) -> None:
    hooks = around(prints({"systemMessage": "hello"}))
    pool = assemble(Ingredients(custom=(look,)))
    rails = Rails(RuleGate(tmp_path), hooks)
    async with ToolExecutor(pool, RunContext(tmp_path), ResultStore(tmp_path / "big"), rails=rails) as executor:
        events = executor.events
        executor.add(ToolUse("1", "look", {"path": "x"}))
        await anext(executor.rest())
    news = [event.progress async for event in events if isinstance(event, CallProgress)]

    assert [each.stage for each in news if isinstance(each, HookNews)] == ["started", "response", "message"]
    assert news[-1].message == "hello"


# In the place of a person


def request(given: AnyTool, folder: Path, **values: Any) -> CallRequest:
    async def refuse(use: ToolUse, run: RunContext) -> Decision:
        return Decision(Verdict.DENY, "no")

    use = ToolUse("1", given.name, values)
    ctx = ToolContext(RunContext(folder), use, AbortSignal(), lambda progress: None, refuse)
    return CallRequest.of(use, given, given.parse(values), ctx)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (
            {"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": [{"type": "addRules"}]},
            Allow({"command": "ls"}, ({"type": "addRules"},)),
        ),
        (
            {"behavior": "deny", "message": "ask Eve", "interrupt": True},
            Deny("ask Eve", interrupt=True),
        ),
    ],
)
@pytest.mark.proves("H5")
async def test_a_hook_can_answer_a_permission_request(decision: Any, expected: Allow | Deny, tmp_path: Path) -> None:
    hooks = around(
        says("PermissionRequest", decision=decision), hook("cat > asked.json", "PermissionRequest"),
    )  # fmt: skip
    answer = await hooks.permission_request(request(shell, tmp_path, command="make"), [{"type": "addRules"}])

    assert answer == expected
    asked = json.loads((tmp_path / "asked.json").read_text())
    assert (asked["tool_input"], asked["permission_suggestions"]) == ({"command": "make"}, [{"type": "addRules"}])


@pytest.mark.parametrize("line", ["true", "exit 2", "./missing", "echo '{'"])
@pytest.mark.proves("H5", "R2")
async def test_a_hook_that_does_not_answer_leaves_the_question_to_the_person(line: str, tmp_path: Path) -> None:
    hooks = around(hook(line, "PermissionRequest"))

    assert await hooks.permission_request(request(shell, tmp_path, command="make")) is None


@tool(reads="file", writes="target", subject="file")
def copy(file: str, target: str, note: str = "") -> str:
    """Would copy a file."""
    return f"{file} to {target}: {note}"


@pytest.mark.parametrize(
    ("spelling", "expected"), [("src/a.py", "/proj/src/a.py"), ("/x", "/x"), ("~/x", "/home/dev/x")]
)
def test_hooks_get_the_path_of_a_call_spelled_out(
    spelling: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/dev")

    told = absolute(request(copy, Path("/proj"), file=spelling, target="b", note=spelling))

    assert told == {"file": expected, "target": "b", "note": spelling}


def test_what_is_no_path_reaches_hooks_as_it_is() -> None:
    assert absolute(request(shell, Path("/proj"), command="make")) == {"command": "make"}


# After the analysis


class Noting(WithoutPolicy):
    """Allows everything, and keeps what hooks had said."""

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []

    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
        self.evidence.append(evidence)
        return Decision(Verdict.ALLOW, "fine")


@pytest.mark.proves("F6")
@pytest.mark.parametrize(("command", "asked"), [("echo $(rm x)", True), ("echo rm x", False)])
async def test_a_command_line_is_analysed_before_its_hooks_are_asked(command: str, asked: bool, tmp_path: Path) -> None:
    """The programs in it decide which hooks are asked, so hooks cannot start before the analysis is there."""
    noting = Noting()
    rails = Rails(noting, around(hook("exit 2", **{"if": "Bash(rm *)"})))
    pool = assemble(Ingredients(custom=(shell,)))
    async with ToolExecutor(pool, RunContext(tmp_path), ResultStore(tmp_path / "big"), rails=rails) as executor:
        executor.add(ToolUse("1", "Bash", {"command": command}))
        await anext(executor.rest())

    assert [evidence.hook is not None for evidence in noting.evidence] == [asked]


@pytest.mark.proves("F6")
async def test_a_command_line_is_analysed_once_in_the_whole_life_of_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flags, schedule, two conditions of hooks, the tool's own check, rules and the run all look at one analysis."""
    command = f"echo one-analysis > {tmp_path.name}"
    parsed, taken_apart = [], []

    class CountingParser(Parser):
        def __init__(self, text: str) -> None:
            parsed.append(text)
            super().__init__(text)

    def count_parts(known: Analysis) -> Any:
        taken_apart.append(known.command)
        return parts_of(known)

    monkeypatch.setattr(analysis, "Parser", CountingParser)
    monkeypatch.setattr(shell_case, "parts_of", count_parts)
    conditions = [hook("true", **{"if": rule}) for rule in ("Bash(echo *)", "Edit(x)")]
    policy = Policy.empty(str(tmp_path), str(tmp_path)).adding(Behaviour.ALLOW, ["Bash"], RuleSource("user"))
    rails = Rails(PolicyGate(LivePolicy(lambda: policy), conditions=conditions_left_to_tools), around(*conditions))
    bash = load_tool(Bash(default_services({"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, tmp_path)))
    pool = assemble(Ingredients(custom=(bash,)))
    async with ToolExecutor(pool, RunContext(tmp_path), ResultStore(tmp_path / "big"), rails=rails) as executor:
        executor.add(ToolUse("1", "Bash", {"command": command}))
        outcome = await anext(executor.rest())

    assert outcome.status is Status.OK
    assert parsed.count(command) == 1
    assert taken_apart.count(command) == 1


@pytest.mark.parametrize(
    ("condition", "asked"), [("copy(a)", True), ("copy(b*)", False), ("Read(a)", True), ("Edit(b)", True)]
)
async def test_the_condition_of_a_hook_looks_at_what_a_tool_declares(
    condition: str, asked: bool, tmp_path: Path
) -> None:
    noting = Noting()
    rails = Rails(noting, around(hook("exit 2", **{"if": condition})))
    pool = assemble(Ingredients(custom=(copy,)))
    async with ToolExecutor(pool, RunContext(tmp_path), ResultStore(tmp_path / "big"), rails=rails) as executor:
        executor.add(ToolUse("1", "copy", {"file": "a", "target": "b"}))
        await anext(executor.rest())

    assert [evidence.hook is not None for evidence in noting.evidence] == [asked]
