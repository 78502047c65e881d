"""What a tool is told in a real run, and what it may change for the calls after it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail import Agent, Allow, Deny, Policy, Question, Text, ToolContext, tool
from handrail.agents.definitions import BUILT_IN
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.conversation.request import ToolDefinition
from handrail.loop.limits import Limits
from handrail.testing import ScriptedModel, say, use
from handrail.tools.context import Budget, RunContext
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import PermissionSnapshot, Refuse
from handrail.tools.schema import Input
from handrail.tools.tool import PromptView, Tool
from tests.opening import NO_FILES, open_agent

pytestmark = pytest.mark.anyio

ENV = {"IS_SANDBOX": "1"}
"""Here permissions may be bypassed, also by root."""


class Nothing(Input):
    pass


class Look(Tool[Nothing]):
    """Notes what it is given, and changes what it is told to."""

    name = "look"
    input_model = Nothing

    def __init__(self, seen: Callable[[ToolContext], Any], change: ContextChange | None = None) -> None:
        self.seen: list[Any] = []
        self._see = seen
        self._change = change

    def prompt(self, view: PromptView) -> str:
        return "Look around."

    def is_read_only(self, args: Nothing) -> bool:
        return True

    async def call(self, args: Nothing, ctx: ToolContext) -> Output:
        self.seen.append(self._see(ctx))
        return Output(text="seen", context_change=self._change)


class Wish(Look):
    """Wants a change, and a person to be asked about it."""

    name = "wish"
    requires_user_interaction = True


def results(agent: Agent[Any]) -> list[str]:
    return [
        block.text
        for message in agent.messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, ToolResult)
    ]


def sent(model: ScriptedModel) -> list[tuple[ToolDefinition, ...]]:
    """The tools of each request."""
    requests: list[Any] = model.requests
    return [request.tools for request in requests]


def agree(_name: str, _input: Any, _question: Question) -> Allow:
    return Allow()


def context(agent: Agent[Any]) -> RunContext:
    """What the calls of an agent share now."""
    return agent.session.conversation.state.context


# What it is told


@pytest.mark.proves("A9", "G15", "G30")
async def test_a_tool_sees_the_rules_its_call_was_decided_on(tmp_path: Path) -> None:
    home, project, more = (tmp_path / name for name in ("home", "project", "more"))
    for folder, rules in ((home, {"allow": ["look", "Bash(ls *)"]}), (project, {"deny": ["Read(.env)"]})):
        (folder / ".handrail").mkdir(parents=True)
        (folder / ".handrail" / "settings.json").write_text(json.dumps({"permissions": rules}))
    more.mkdir()
    flags = SettingsFlags(mode="acceptEdits", allow_bypass=True, folders=(str(more),), managed_policy=False)
    look = Look(lambda ctx: (ctx.permissions, ctx.decision))
    model = ScriptedModel([[use("1", "look")], [say("Done.")]])

    await open_agent(model, [look], flags=flags, cwd=project, env={**ENV, "HOME": str(home)}).ask(".")

    [(seen, decision)] = look.seen
    assert dict(seen.deny_rules) == {"project": ("Read(.env)",)}
    assert dict(seen.allow_rules) == {"user": ("look", "Bash(ls *)")}
    assert dict(seen.ask_rules) == {}
    assert (seen.mode, seen.working_dirs, seen.version) == ("acceptEdits", (str(project), str(more)), decision.version)
    assert (seen.bypass_available, seen.auto_available) == (True, True)
    with pytest.raises(TypeError):
        seen.deny_rules["project"] = ()


@pytest.mark.proves("G16")
async def test_a_rule_that_is_agreed_to_makes_a_new_snapshot_and_leaves_the_old_one(tmp_path: Path) -> None:
    look = Look(lambda ctx: ctx.permissions)

    @tool
    async def note(text: str) -> str:
        """Keep a text."""
        return text

    def always(_name: str, _input: Any, question: Question) -> Allow:
        return question.always()

    answers: list[Any] = [[use("1", "look")], [use("2", "note", text="a")], [use("3", "look")], [say("Done.")]]
    agent = Agent(ScriptedModel(answers), [look, note], can_use_tool=always, cwd=tmp_path, env=ENV)
    await agent.ask("Go.")

    before, after = look.seen
    assert after.version > before.version
    assert (dict(before.allow_rules), dict(after.allow_rules)["local"]) == ({}, ("note",))


async def test_the_policy_is_known_before_the_call_is_decided(tmp_path: Path) -> None:
    class Careful(Look):
        async def validate(self, args: Nothing, ctx: ToolContext) -> Refuse | None:
            return Refuse("not in this mode") if ctx.permissions.mode == "plan" else None

    model = ScriptedModel([[use("1", "look")], [say("Done.")]])
    agent = Agent(model, [Careful(lambda _ctx: None)], mode="plan", cwd=tmp_path, env=ENV)
    await agent.ask("Go.")

    assert "not in this mode" in results(agent)[0]


@pytest.mark.proves("A9", "M4")
async def test_a_tool_sees_the_answer_that_asks_for_it(tmp_path: Path) -> None:
    look = Look(lambda ctx: (ctx.message, list(ctx.history)))

    await Agent(ScriptedModel([[say("I look."), use("1", "look")], [say("Done.")]]), [look], cwd=tmp_path, env=ENV).ask(
        "?"
    )

    [(message, history)] = look.seen
    assert isinstance(message, AssistantMessage)
    assert message.content == (Text("I look."), ToolUse("1", "look", {}))
    assert history == [UserMessage((Text("?"),))]


@pytest.mark.proves("M1")
async def test_a_tool_sees_what_is_left_of_the_limits(tmp_path: Path) -> None:
    look = Look(lambda ctx: ctx.budget)
    answers: list[Any] = [[use("1", "look")], [use("2", "look")], [say("Done.")]]

    await Agent(ScriptedModel(answers), [look], limits=Limits(turns=5), cwd=tmp_path, env=ENV).ask("Go.")
    await Agent(ScriptedModel(answers), [look], cwd=tmp_path, env=ENV).ask("Go.")

    assert look.seen == [Budget(turns=5), Budget(turns=4), Budget(), Budget()]


@pytest.mark.proves("A11", "M1", "M6")
async def test_prompts_depend_on_people_agents_and_tools_and_stay_what_they_were_at_first(tmp_path: Path) -> None:
    class Dependent(Look):
        def prompt(self, view: PromptView) -> str:
            agents = [(agent.name, agent.description) for agent in view.agents]
            return f"{view.interactive} {view.mode} {sorted(view.tools)} {agents}"

    plan = Dependent(lambda _ctx: None, ContextChange(mode="plan"))
    model = ScriptedModel([[use("1", "look")], [say("Done.")], [say("Again.")]])
    agent = open_agent(
        model,
        [plan],
        builtin_tools=["Agent"],
        agents={"Explore": {"description": "looks", "prompt": "Look."}},
        interactive=True,
        flags=replace(NO_FILES, mode="acceptEdits"),
        cwd=tmp_path,
        env=ENV,
    )
    await agent.ask("Go.")
    await agent.ask("Once more.")

    first, second, third = sent(model)
    others = {each.name: each.description for each in BUILT_IN}
    agents = [("Explore", "looks"), *((name, others[name]) for name in ("general-purpose", "Plan"))]
    assert first[1].name == "look"
    assert json.loads(first[1].definition)["description"] == f"True acceptEdits ['Agent', 'look'] {agents}"
    assert context(agent).permissions.mode == "plan"
    assert first == second == third, "the cached prefix does not change with the mode"


@pytest.mark.proves("A10", "A25", "M6")
async def test_a_person_is_asked_in_the_words_of_the_tool(tmp_path: Path) -> None:
    class Post(Wish):
        def display_name(self, args: Nothing | None = None) -> str:
            return "Post office" if args is None else "Post office (open)"

        def description(self, args: Nothing, view: PromptView) -> str:
            return f"Posts it in {view.mode}, {'watched' if view.interactive else 'alone'}, beside {sorted(view.tools)}"

    asked: list[Question] = []

    def note(_name: str, _input: Any, question: Question) -> Deny:
        asked.append(question)
        return Deny("no")

    agent = open_agent(
        ScriptedModel([[use("1", "wish")], [say("Done.")]]),
        [Post(lambda _ctx: None)],
        builtin_tools=False,
        can_use_tool=note,
        interactive=True,
        flags=replace(NO_FILES, mode="acceptEdits"),
        cwd=tmp_path,
        env=ENV,
    )
    await agent.ask("Go.")

    assert [(each.name, each.description) for each in asked] == [
        ("Post office (open)", "Posts it in acceptEdits, watched, beside ['wish']")
    ]


# What it may change


@pytest.mark.proves("A33", "G29")
async def test_plan_mode_is_entered_by_a_tool_and_left_into_the_mode_before_it(tmp_path: Path) -> None:
    enter = Look(lambda ctx: ctx.permissions.mode, ContextChange(mode="plan"))
    leave = Wish(lambda ctx: (ctx.permissions.mode, ctx.permissions.pre_plan_mode), ContextChange(leave_plan=True))
    write = {"file_path": str(tmp_path / "a.txt"), "content": "x"}
    answers: list[Any] = [
        [use("1", "look"), use("2", "Write", **write)],
        [use("3", "wish"), use("4", "Write", **write)],
        [say("Done.")],
    ]
    agent = Agent(
        ScriptedModel(answers), [enter, leave], can_use_tool=planned, mode="acceptEdits",
        cwd=tmp_path, env=ENV,
    )  # fmt: skip
    await agent.ask("Go.")

    _, refused, _, written = results(agent)
    assert "plan" in refused
    assert written.startswith("Created")
    assert (enter.seen, leave.seen) == (["acceptEdits"], [("plan", "acceptEdits")])
    assert context(agent).permissions.mode == "acceptEdits"


def planned(name: str, _input: Any, _question: Question) -> Allow | Deny:
    return Allow() if name == "wish" else Deny("the plan is not agreed to yet")


@pytest.mark.proves("A33", "G29")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(ContextChange(mode="acceptEdits"), id="a wider mode"),
        pytest.param(ContextChange(mode="bypassPermissions"), id="no permissions at all"),
        pytest.param(ContextChange(add_directories=("/usr",)), id="another working folder"),
        pytest.param(ContextChange(mode="plan", add_directories=("/usr",)), id="a stricter mode does not pay for it"),
        pytest.param(ContextChange(cwd=Path("/usr")), id="a current folder outside"),
    ],
)
async def test_a_tool_that_nobody_was_asked_about_cannot_widen_what_is_permitted(
    tmp_path: Path, change: ContextChange
) -> None:
    flags = replace(NO_FILES, allow_bypass=True, allowed=("look",))
    look = Look(lambda ctx: ctx.permissions, change)
    answers: list[Any] = [[use("1", "look"), use("2", "look")], [say("Done.")]]
    agent = open_agent(ScriptedModel(answers), [look], can_use_tool=agree, flags=flags, cwd=tmp_path, env=ENV)
    await agent.ask("Go.")

    assert all("what it changed for later calls was lost" in text for text in results(agent))
    first, second = look.seen
    assert (first.mode, first.working_dirs, first.version) == (second.mode, second.working_dirs, second.version)
    assert context(agent).cwd == tmp_path


@pytest.mark.proves("A33", "G30")
async def test_with_a_persons_consent_a_tool_adds_a_working_folder_and_goes_there(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / "a.txt").write_text("words\n")
    wish = Wish(lambda _ctx: None, ContextChange(cwd=there, add_directories=(str(there),)))
    read = use("2", "Read", file_path=str(there / "a.txt"))
    answers: list[Any] = [[use("0", "Read", file_path=str(there / "a.txt")), use("1", "wish")], [read], [say("Done.")]]
    agent = Agent(ScriptedModel(answers), [wish], can_use_tool=planned, cwd=here, env=ENV)
    await agent.ask("Go.")

    refused, _, text = results(agent)
    assert "outside the working folders" in refused or "the plan is not agreed" in refused
    assert "words" in text
    assert context(agent).cwd == there
    assert context(agent).permissions.working_dirs == (str(here), str(there))


async def test_consent_does_not_lift_what_the_session_forbids(tmp_path: Path) -> None:
    wish = Wish(lambda _ctx: None, ContextChange(mode="bypassPermissions"))
    model = ScriptedModel([[use("1", "wish")], [say("Done.")]])
    agent = Agent(model, [wish], can_use_tool=agree, cwd=tmp_path, env=ENV)
    await agent.ask("Go.")

    assert "the mode 'bypassPermissions' cannot be entered here; 'default' stays" in results(agent)[0]


@pytest.mark.proves("A33", "B21", "R5")
async def test_a_tool_that_a_tool_adds_is_appended_to_the_next_request(tmp_path: Path) -> None:
    @tool(read_only=True)
    async def added() -> str:
        """A first tool by its name."""
        return "here"

    look = Look(lambda _ctx: None, ContextChange(add_tools=(added,)))
    answers: list[Any] = [[use("1", "look"), use("2", "added")], [use("3", "added"), use("4", "look")], [say("Done.")]]
    model = ScriptedModel(answers)
    agent = Agent(model, [look], cwd=tmp_path, env=ENV)
    await agent.ask("Go.")

    first, second, third = sent(model)
    assert [each.name for each in second[len(first) :]] == ["added"]
    assert second[: len(first)] == first
    assert third == second
    _, too_early, found, taken = results(agent)
    assert "no tool 'added'" in too_early
    assert found == "here"
    assert "there is a tool 'added' already" in taken


@pytest.mark.proves("A34")
async def test_a_call_that_may_have_company_changes_nothing(tmp_path: Path) -> None:
    class Shared(Look):
        def is_concurrency_safe(self, args: Nothing) -> bool:
            return True

    shared = Shared(lambda ctx: ctx.permissions.mode, ContextChange(mode="plan"))
    answers: list[Any] = [[use("1", "look")], [use("2", "look")], [say("Done.")]]
    agent = Agent(ScriptedModel(answers), [shared], cwd=tmp_path, env=ENV)
    await agent.ask("Go.")

    assert shared.seen == ["default", "default"]


# Which tools there are


class Sometimes(Look):
    name = "also"
    enabled = False

    def is_enabled(self) -> bool:
        return self.enabled


@pytest.mark.proves("A13", "B11", "B21", "R5")
@pytest.mark.parametrize("asks", [True, False], ids=["a tool asks for another look", "the next request looks"])
async def test_a_tool_that_becomes_usable_is_appended_and_one_that_stops_keeps_its_place(
    tmp_path: Path, asks: bool
) -> None:
    also = Sometimes(lambda _ctx: None)

    def switch(ctx: ToolContext) -> bool:
        also.enabled = not also.enabled
        return asks and "also" in ctx.refresh_tools()

    look = Look(switch)
    answers: list[Any] = [
        [use("1", "look")],
        [use("2", "also")],
        [use("3", "look")],
        [use("4", "also")],
        [say("Done.")],
    ]
    model = ScriptedModel(answers)
    agent = Agent(model, [also, look], cwd=tmp_path, env=ENV)
    await agent.ask("Go.")

    before, after, *rest = sent(model)
    assert after[: len(before)] == before
    assert [each.name for each in after[len(before) :]] == ["also"]
    assert all(tools == after for tools in rest), "what was sent stays where it is"
    assert look.seen == [asks, asks]
    assert results(agent)[1] == "seen"
    assert "also cannot be used at present" in results(agent)[3]


@pytest.mark.proves("B14", "G29")
async def test_tools_that_plan_mode_left_out_come_back_when_it_is_left(tmp_path: Path) -> None:
    model = ScriptedModel([[say("Planned.")], [say("Done.")]])
    agent = Agent(model, mode="plan", cwd=tmp_path, env=ENV)
    await agent.ask("Plan.")
    agent.session.settings.set_mode("default")
    await agent.ask("Go.")

    planning, working = sent(model)
    assert "Write" not in {each.name for each in planning}
    assert working[: len(planning)] == planning
    assert "Write" in {each.name for each in working[len(planning) :]}


def _snapshot(value: Policy) -> PermissionSnapshot:
    """The policy is what tools are promised: the type checker looks at this."""
    return value
