"""One decision by every door: a live call, `Policy.decide`, explain, and a recorded call that is decided again."""

import asyncio
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Policy, tool
from handrail.cli.permissions.recorded import read
from handrail.cli.permissions.simulate import Replay
from handrail.conversation.blocks import ToolUse
from handrail.conversation.redact import build_redactor
from handrail.dispatch.approval.audit import Audit
from handrail.dispatch.approval.decide import ask_own_checks, conditions_left_to_tools
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import Rails
from handrail.dispatch.results import ResultStore
from handrail.errors import HandrailError
from handrail.permissions.decide import case_of
from handrail.permissions.facts import NOTHING_SAID
from handrail.permissions.layers import decide
from handrail.permissions.modes import MODES
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tools.output import Output
from handrail.tools.permission import Ask, Check, Opinion, Refuse, Verdict
from handrail.tools.pool import AnyTool, Ingredients, assemble
from handrail.tools.raw import RawTool
from handrail.tools.request import CallRequest
from handrail.tools.tool import McpInfo, PromptView
from tests.permissions.world import ALL_MODES
from tests.permissions.world import TOOLS as INSTALLED

RAISES = "raises"


class Made(RawTool):
    """A tool that says of itself what it was made with; `RAISES` in the place of an answer raises."""

    def __init__(self, says: Mapping[str, Any]) -> None:
        mcp = says.get("mcp")
        super().__init__("mcp__db__made" if mcp else "Made", {"type": "object", "properties": {"where": {}}})
        self.mcp = McpInfo("db", "made") if mcp else None
        self.subject = "where" if says.get("subject") else ""
        self.requires_user_interaction = says.get("person", False)
        self._says = says

    def prompt(self, view: PromptView) -> str:
        return "Do it."

    def is_read_only(self, args: Any) -> bool:
        return bool(self._answer("read_only"))

    def is_destructive(self, args: Any) -> bool:
        return bool(self._answer("destructive"))

    def access(self, args: Any, run: RunContext) -> Access:
        kind = self._answer("kind")
        return Access.of(**{kind: args["where"]}) if kind else Access.unknown()

    def _answer(self, name: str) -> Any:
        if self._says.get(name) == RAISES:
            raise ValueError(name)
        return self._says.get(name)

    async def validate(self, args: Any, ctx: ToolContext) -> Refuse | Ask | None:
        answer: Refuse | Ask | None = self._answer("validate")
        return answer

    async def check_permission(self, args: Any, ctx: ToolContext) -> Check:
        return self._answer("check") or Check()

    async def call(self, args: Any, ctx: ToolContext) -> Output:
        return Output(text="done")


def live(subject: AnyTool, values: Mapping[str, Any], policy: Policy, audit: Audit | None = None) -> Outcome:
    async def run() -> Outcome:
        gate = PolicyGate(LivePolicy(lambda: policy), conditions=conditions_left_to_tools, audit=audit)
        pool, run = assemble(Ingredients(custom=(subject,))), RunContext(Path(policy.cwd))
        async with ToolExecutor(pool, run, ResultStore(Path(policy.cwd) / "big"), rails=Rails(gate)) as executor:
            executor.add(ToolUse("1", subject.name, values))
            return await anext(executor.rest())

    return asyncio.run(run())


def policy_in(folder: str, mode: str = "default", **rules: list[str]) -> Policy:
    policy = Policy.empty(folder, str(Path(folder).parent)).with_availability(ALL_MODES)
    for kind, texts in rules.items():
        policy = policy.adding(Behaviour(kind), texts, RuleSource("project", "settings.json", 1, folder))
    return policy.with_mode(mode)


FLAG = st.sampled_from([True, False, RAISES])
TOOLS = st.fixed_dictionaries(
    {
        "read_only": FLAG,
        "destructive": FLAG,
        "kind": st.sampled_from(["reads", "writes", "removes", "walks", "runs", None, RAISES]),
        "subject": st.booleans(),
        "person": st.booleans(),
        "mcp": st.booleans(),
    }
)
RULES = st.lists(
    st.sampled_from(
        [
            "Made",
            "Made(keys/.env)",
            "Made(where:x)",
            "mcp__db",
            "mcp__db__made(x)",
            "Read",
            "Read(.env)",
            "Edit(src/**)",
        ]
    ),
    max_size=2,
)
WHERE = st.sampled_from(["keys/.env", "src/a", "/etc/hosts", ".", "x", "rm -rf ~"])


@pytest.mark.proves("R3")
@given(TOOLS, WHERE, st.sampled_from(MODES), RULES, RULES, RULES)
def test_a_live_call_the_public_door_and_a_replay_give_the_same_opinions(
    says: dict[str, Any], where: str, mode: str, allow: list[str], ask: list[str], deny: list[str]
) -> None:
    with TemporaryDirectory() as made:
        folder = os.path.realpath(made) + "/proj"
        Path(folder, "keys").mkdir(parents=True)
        policy = policy_in(folder, mode, allow=allow, ask=ask, deny=deny)
        audit = Audit(Path(made) / "audit", build_redactor({}, ()))

        outcome = live(Made(says), {"where": where}, policy, audit)
        audit.close()
        if outcome.cause is Cause.REFUSED_INPUT:  # a file that was not read is not written, whatever rules say
            return
        door = policy.decide(Made(says), {"where": where})
        [call] = read(str(audit.file), INSTALLED)
        replay = decide(case_of(call.request, Replay(policy, mode="").policy(call), call.evidence or NOTHING_SAID))

    assert outcome.decision is not None
    assert door.opinions == outcome.decision.opinions[: len(door.opinions)], "the last resort may be added"
    assert door.verdict is outcome.decision.verdict or (door.verdict, outcome.status) == (Verdict.ASK, Status.DENIED)
    assert [plain(each) for each in replay.opinions] == [plain(each) for each in door.opinions]
    assert replay.verdict is door.verdict


def plain(opinion: Opinion) -> tuple[Any, ...]:
    return opinion.strength, opinion.verdict, opinion.layer, opinion.reason


# The public door


@tool(subject="environment", reads=())
def deploy(environment: str, force: bool = False) -> str:
    """Deploy to an environment."""
    raise AssertionError("nothing is run")


@pytest.mark.parametrize(
    ("rules", "values", "verdict", "layers"),
    [
        pytest.param({}, {"environment": "prod"}, "ask", ["person"], id="without a rule"),
        pytest.param({"allow": ["deploy"]}, {"environment": "prod"}, "allow", ["allow rule"], id="an allow rule"),
        pytest.param(
            {"allow": ["deploy"], "deny": ["deploy(prod)"]},
            {"environment": "prod"},
            "deny",
            ["deny rule", "allow rule"],
            id="all opinions are kept",
        ),
        pytest.param({"deny": ["deploy(prod)"]}, {"force": True}, "deny", ["deny rule"], id="an incomplete input"),
        pytest.param({"deny": ["deploy(prod)"]}, {"env": "x"}, "deny", ["deny rule"], id="an input that does not fit"),
    ],
)
def test_a_policy_says_what_it_thinks_of_a_call(
    rules: dict[str, list[str]], values: dict[str, Any], verdict: str, layers: list[str], tmp_path: Path
) -> None:
    decision = policy_in(str(tmp_path), **rules).decide(deploy, values)  # type: ignore[arg-type]

    assert decision.verdict.value == verdict
    assert [opinion.layer for opinion in decision.opinions] == layers


@pytest.mark.parametrize(
    ("given", "values", "said"),
    [
        (deploy, None, "the input of deploy is None. Give an object of its fields"),
        (deploy, "prod", "the input of deploy is 'prod'. Give an object of its fields"),
        ("deploy", {}, "Policy.decide takes a tool, not 'deploy'"),
    ],
)
def test_what_is_no_call_is_a_clear_error(given: Any, values: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(HandrailError, match=re.escape(said)):
        policy_in(str(tmp_path)).decide(given, values)


def test_an_input_without_a_field_of_the_tool_is_decided_without_asking_the_tool(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = policy_in(str(tmp_path), deny=["Bash(rm *)"])

    assert policy.decide(INSTALLED.get("Bash"), {"comand": "rm x"}).verdict is not Verdict.ALLOW
    assert caplog.text == ""


# The tool's own checks


@pytest.mark.parametrize(
    ("says", "verdict", "told"),
    [
        pytest.param({"check": RAISES}, Verdict.DENY, "a check of Made raised ValueError: check", id="it raises"),
        pytest.param({"validate": RAISES}, Verdict.DENY, "raised ValueError: validate", id="validation raises"),
        pytest.param({"check": Check(Verdict.DENY, "no")}, Verdict.DENY, "no", id="it says no"),
        pytest.param({"validate": Ask("odd")}, Verdict.ASK, "odd", id="validation is not sure"),
        pytest.param({"validate": Refuse("not read yet")}, Verdict.ALLOW, "it only reads", id="the session matters"),
        pytest.param({}, Verdict.ALLOW, "it only reads", id="it says nothing"),
    ],
)
def test_what_explain_says_of_own_checks_is_what_happens_to_the_call(
    says: dict[str, Any], verdict: Verdict, told: str, tmp_path: Path
) -> None:
    policy, subject = policy_in(os.path.realpath(tmp_path)), Made({"read_only": True, "kind": "reads", **says})
    use, run = ToolUse("1", "Made", {"where": "src/a"}), RunContext(tmp_path)

    async def explained() -> Any:
        request = CallRequest.hypothetical(use, subject, run)
        return decide(case_of(request, policy, await ask_own_checks(request)))

    decision = asyncio.run(explained())

    assert (decision.verdict, told in decision.reason) == (verdict, True)
    ran = live(subject, dict(use.input), policy).status is Status.OK
    assert ran == (verdict is Verdict.ALLOW and "validate" not in says)


def test_an_audit_line_of_a_tool_that_is_not_installed_keeps_what_it_said(tmp_path: Path) -> None:
    folder = os.path.realpath(tmp_path)
    audit = Audit(tmp_path / "audit", build_redactor({}, ()))
    live(Made({"kind": "reads", "destructive": RAISES, "subject": True}), {"where": "x"}, policy_in(folder), audit)
    audit.close()

    facts = json.loads(audit.file.read_text())["facts"]
    assert facts["destructive"] is True
    [call] = read(str(audit.file), INSTALLED)
    case = case_of(call.request, policy_in(folder), call.evidence or NOTHING_SAID)
    assert case.facts.warnings == ("the tool calls it destructive",)
    assert (case.facts.subject, case.facts.matches("x"), case.facts.matches("y")) == ("x", True, False)
