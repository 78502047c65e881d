"""The `if` of hooks: a hook runs for every call that an ask rule of the same text would ask about."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail import Access, Hooks, Output, Policy, Rails, RunContext, ToolContext, ToolExecutor, ToolUse
from handrail.builtin.table import base_tools
from handrail.dispatch.approval.decide import conditions_left_to_tools
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.call_hooks import CallHooks
from handrail.dispatch.results import ResultStore
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.specs import HookCallback
from handrail.permissions.policy import ModeAvailability
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.session.services import default_services
from handrail.tools.outcome import Cause, Outcome
from handrail.tools.pool import AnyTool, Ingredients, assemble
from handrail.tools.raw import RawTool
from handrail.tools.stub import load_tool
from handrail.tools.tool import PromptView

SECRET = "the secret of the file"


class Look(RawTool):
    """Touches what its input says, in the words of a declaration."""

    aliases = ("Glance",)

    def __init__(self) -> None:
        super().__init__("Look", {"type": "object"})

    def prompt(self, view: PromptView) -> str:
        return "Look."

    def is_read_only(self, args: Mapping[str, Any]) -> bool:
        return True

    def access(self, args: Mapping[str, Any], run: RunContext) -> Access:
        return Access.of(**args) if args else Access.unknown()

    async def call(self, args: Mapping[str, Any], ctx: ToolContext) -> Output:
        return Output(text="looked")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Path(os.path.realpath(tmp_path_factory.mktemp("home"))) / "proj"
    (made / "sub" / "deep").mkdir(parents=True)
    (made / "empty").mkdir()
    (made / "sub" / "deep" / "cred.txt").write_text(SECRET)
    (made / "linked").symlink_to("sub")
    return made


def call(folder: Path, name: str, values: Mapping[str, Any], condition: str) -> tuple[bool, Outcome]:
    """Whether the hook ran, and what became of the call."""
    seen: list[str] = []
    watching = HookCallback(lambda event: seen.append(event["tool_name"]), condition=condition)
    env = {"HOME": str(folder.parent), "PATH": os.environ["PATH"]}
    hooks = Hooks(callbacks={"PreToolUse": [watching]}, environment=HookEnvironment(env))
    policy = Policy.empty(str(folder), str(folder.parent)).with_availability(ModeAvailability(bypass_available=True))
    policy = policy.with_mode("bypassPermissions")
    services = default_services(env, folder)
    entries = base_tools(no_catalog, lambda: services)
    tools = [load_tool(entry.load()) for entry in entries if entry.name in ("Read", "Grep", "Glob", "Write", "Bash")]

    async def run() -> Outcome:
        gate = PolicyGate(LivePolicy(lambda: policy), conditions=conditions_left_to_tools)
        pool = assemble(Ingredients(custom=(Look(), *tools)))
        rails = Rails(gate, CallHooks(hooks))
        async with ToolExecutor(pool, RunContext(folder), ResultStore(folder / "big"), rails=rails) as executor:
            executor.add(ToolUse("1", name, values))
            return await anext(executor.rest())

    outcome = asyncio.run(run())
    return bool(seen), outcome


def no_catalog() -> Any:
    raise LookupError


CRED = "Read(cred.txt)"
CASES = [
    pytest.param("Grep", {"pattern": "secret"}, CRED, True, id="a search in the project"),
    pytest.param("Grep", {"pattern": "secret", "path": "sub"}, CRED, True, id="a search in a folder above it"),
    pytest.param("Grep", {"pattern": "secret", "path": "linked"}, CRED, True, id="a search through a link"),
    pytest.param("Grep", {"pattern": "secret", "path": "empty"}, CRED, False, id="a search elsewhere"),
    pytest.param("Glob", {"pattern": "**/*.txt"}, CRED, True, id="a list of files"),
    pytest.param("Bash", {"command": "grep -r secret ."}, CRED, True, id="a command that goes through folders"),
    pytest.param("Bash", {"command": "grep -r secret empty"}, CRED, False, id="a command that goes elsewhere"),
    pytest.param("Bash", {"command": "cat sub/deep/cred.txt"}, CRED, True, id="a command that reads it"),
    pytest.param("Look", {"walks": ["."]}, CRED, True, id="a tool that walks"),
    pytest.param("Look", {"walks": ["."], "filtered": True}, CRED, True, id="a tool that leaves files out"),
    pytest.param("Look", {"walks": ["empty"]}, CRED, False, id="a tool that walks elsewhere"),
    pytest.param("Look", {"reads": ["sub"]}, CRED, True, id="a folder that is read"),
    pytest.param("Look", {}, CRED, True, id="a tool that declares nothing"),
    pytest.param("Look", {"reads": ["x"]}, "Read", True, id="a bare family name"),
    pytest.param("Look", {"writes": ["x"]}, "Read", False, id="a bare family name of another effect"),
    pytest.param("Look", {"writes": ["x"]}, "Edit", True, id="a bare family name of writers"),
    pytest.param("Look", {"runs": "ls"}, "Bash", True, id="a bare family name of commands"),
    pytest.param("Look", {"reaches": ["https://example.com"]}, "WebFetch", True, id="a bare family name of addresses"),
    pytest.param("Look", {"reads": ["x"]}, "Look(y)", True, id="a name with content that the tool cannot match"),
    pytest.param("Glance", {"reads": ["x"]}, "Look", True, id="the tool by another of its names"),
]


@pytest.mark.proves("H1")
@pytest.mark.parametrize(("name", "values", "condition", "runs"), CASES)
def test_a_condition_sees_what_a_call_touches(
    name: str, values: dict[str, Any], condition: str, runs: bool, folder: Path
) -> None:
    ran, _ = call(folder, name, values, condition)

    assert ran == runs


PATHS = st.sampled_from(["sub/deep/cred.txt", "sub", ".", "empty", "linked", "linked/deep/cred.txt", "new", "~/proj"])
LOOKS = st.dictionaries(
    st.sampled_from(["reads", "writes", "removes", "walks"]), st.lists(PATHS, min_size=1, max_size=2), max_size=2
)
CALLS = st.one_of(
    st.tuples(st.just("Look"), LOOKS),
    st.tuples(st.just("Grep"), PATHS.map(lambda path: {"pattern": "x", "path": path})),
    st.tuples(st.just("Read"), PATHS.map(lambda path: {"file_path": path})),
    st.tuples(
        st.just("Bash"),
        st.tuples(st.sampled_from(["cat", "grep -r x", "ls", "find", "diff -r empty"]), PATHS).map(
            lambda both: {"command": " ".join(both)}
        ),
    ),
)
RULES = st.sampled_from(
    ["Read(cred.txt)", "Edit(cred.txt)", "Read(sub/**)", "Read(//**)", "Read", "Edit", "Bash", "Bash(cat *)", "Look(x)"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CALLS, RULES)
def test_a_hook_runs_wherever_an_ask_rule_asks(folder: Path, made: tuple[str, dict[str, Any]], rule: str) -> None:
    name, values = made
    policy = Policy.empty(str(folder), str(folder.parent)).adding(Behaviour.ASK, [rule], RuleSource("user"))
    decision = policy.decide(tool_of(name, folder), values)

    ran, outcome = call(folder, name, values, rule)

    refused = outcome.cause is Cause.REFUSED_INPUT  # a declared file that was not read is refused before hooks run
    assert ran or refused or not any(rule in opinion.source or rule in opinion.reason for opinion in decision.opinions)


def tool_of(name: str, folder: Path) -> AnyTool:
    if name == "Look":
        return Look()
    services = default_services({"HOME": str(folder.parent)}, folder)
    return next(load_tool(e.load()) for e in base_tools(no_catalog, lambda: services) if e.name == name)
