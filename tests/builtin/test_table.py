"""The one list of built-in tools, and their schemas as they go out."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail.builtin.definitions import FILE, is_fixed, render_definitions
from handrail.builtin.table import USUAL_FEATURES, base_tools
from handrail.config.execution import DEFAULT_FEATURES
from handrail.session.services import default_services
from handrail.session.tools import make_catalog
from handrail.tools.catalog import Catalog
from handrail.tools.context import AgentType
from handrail.tools.permission import NoRules
from handrail.tools.pool import (
    AnyTool,
    Deferral,
    Environment,
    Ingredients,
    Pool,
    assemble,
    definition_json,
)
from handrail.tools.schema import Input
from handrail.tools.stub import load_tool
from handrail.tools.tool import PLAIN_VIEW, PromptView, Tool

ON = Deferral(mode="on")
EVERY = Environment(features=DEFAULT_FEATURES, variables={"HANDRAIL_REPL": "1"})
MAX_SENT_BYTES = 15_000


def everything() -> Pool:
    """All tools, also those that this machine or this environment would leave out."""
    entries = tuple(
        replace(entry, when=lambda _environment: True)
        for entry in base_tools(lambda: catalog, lambda: default_services({}))
    )
    catalog = Catalog(Ingredients(entries=entries, environment=EVERY, deferral=ON))
    return catalog.pool


@pytest.mark.proves("B1", "B12")
def test_the_list_names_every_built_in_tool_and_there_is_no_other() -> None:
    folder = Path(sys.modules["handrail.builtin"].__path__[0])
    prompts = {path.parent.name if path.stem == "tool" else path.stem for path in folder.rglob("*.md")}
    modules = {type(tool).__module__.removesuffix(".tool").rpartition(".")[2] for tool in everything()}

    assert [tool.name for tool in everything()] == [
        "Agent",
        "AskUserQuestion",
        "Bash",
        "CronCreate",
        "CronDelete",
        "CronList",
        "Edit",
        "EnterPlanMode",
        "EnterWorktree",
        "ExitPlanMode",
        "ExitWorktree",
        "Glob",
        "Grep",
        "LSP",
        "ListAgents",
        "Monitor",
        "NotebookEdit",
        "PowerShell",
        "REPL",
        "Read",
        "RemoteTrigger",
        "ScheduleWakeup",
        "SendMessage",
        "Skill",
        "Sleep",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TeamCreate",
        "TeamDelete",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
        "Write",
    ]
    assert modules == prompts


@pytest.mark.proves("A8", "R5")
def test_the_definitions_are_those_that_were_written_down() -> None:
    """A change here costs every user's prompt cache: make it on purpose, and look at the difference."""
    assert FILE.read_text("utf-8") == render_definitions(everything()), "if the change is meant, run: make definitions"


@pytest.mark.proves("R5")
@pytest.mark.parametrize(
    "view", [PLAIN_VIEW, PromptView(True, frozenset({"Read"}), (AgentType("helper"),), lambda: NoRules(mode="plan"))]
)
def test_a_tool_that_is_not_loaded_is_described_by_the_same_bytes(view: PromptView) -> None:
    pool = everything()

    for listed in pool.listed:
        assert definition_json(listed, view) == definition_json(load_tool(listed), view), listed.name


class Shown(Tool[Input]):
    name = "Shown"
    input_model = Input


class Speaking(Shown):
    def prompt(self, view: PromptView) -> str:
        return "Never the same."


class Conditional(Shown):
    def is_enabled(self) -> bool:
        return False


class Renamed(Shown):
    def __init__(self) -> None:
        self.aliases = ("OfThisRun",)


@pytest.mark.parametrize("tool", [Speaking(), Conditional(), Renamed()], ids=lambda tool: type(tool).__name__)
def test_a_tool_that_says_more_than_its_class_does_is_not_written_down(tool: AnyTool) -> None:
    assert is_fixed(Shown())
    assert render_definitions([tool]) == "{}\n"


@pytest.mark.parametrize("tool", everything(), ids=lambda tool: tool.name)
def test_every_field_of_every_tool_is_described_and_nothing_else_is_accepted(tool: AnyTool) -> None:
    schema = tool.input_schema
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert all(field.get("description") for field in schema["properties"].values())


def names(**environment: Any) -> list[str]:
    what = Ingredients(
        entries=base_tools(lambda: Catalog(Ingredients()), lambda: default_services({})),
        environment=Environment(USUAL_FEATURES, **environment),
    )
    return [tool.name for tool in assemble(what)]


@pytest.mark.proves("B6")
@pytest.mark.parametrize(("value", "there"), [("", True), ("0", True), ("1", False), ("true", False)])
def test_our_search_gives_way_to_one_that_the_shell_brings(value: str, there: bool) -> None:
    offered = set(names(variables={"HANDRAIL_EMBEDDED_SEARCH": value} if value else {}))

    assert ({"Glob", "Grep"} <= offered) is there
    assert offered.isdisjoint({"Glob", "Grep"}) is not there
    assert "Read" in offered


@pytest.mark.proves("B9")
def test_simple_mode_has_the_small_set_and_with_repl_code_takes_the_place_of_commands_and_searches() -> None:
    repl = {"HANDRAIL_REPL": "1"}

    assert names(simple=True) == ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]
    assert names(simple=True, variables=repl) == ["Edit", "REPL", "Read", "Write"]
    assert set(names(variables=repl)) == {*names(), "REPL"}
    assert {"Bash", "Sleep", "TaskCreate"} < set(names())


@pytest.mark.proves("B9")
def test_a_variable_asks_for_simple_mode() -> None:
    def simple(value: str) -> bool:
        return "Sleep" not in {tool.name for tool in make_catalog(variables={"HANDRAIL_SIMPLE": value}).pool.listed}

    assert [simple(value) for value in ("1", "true", "0", "")] == [True, True, False, False]


TASK_LIST = {"TaskCreate", "TaskGet", "TaskList", "TaskUpdate"}


@pytest.mark.proves("B5", "N19")
@pytest.mark.parametrize(
    ("value", "there"),
    [("0", {"TodoWrite"}), ("false", {"TodoWrite"}), ("1", TASK_LIST), ("", TASK_LIST)],
)
def test_a_variable_chooses_between_the_two_lists(value: str, there: set[str]) -> None:
    offered = names(variables={"CLAUDE_CODE_ENABLE_TASKS": value})

    assert {"TodoWrite", *TASK_LIST} & set(offered) == there


def test_what_is_always_sent_stays_small() -> None:
    """Its tokens are paid with every request: shorten a description rather than raise the bound."""
    pool = everything()
    always = [tool for tool in pool.listed if not tool.should_defer]
    sent = b",".join([definition_json(tool, PLAIN_VIEW) for tool in always])

    assert {"Bash", "Edit", "Glob", "Grep", "Read", "Write", "ToolSearch"} <= {tool.name for tool in always}
    assert len(sent) <= MAX_SENT_BYTES


LAZY = """
import sys
from handrail.builtin.table import USUAL_FEATURES, base_tools
from handrail.tools.catalog import Catalog
from handrail.tools.pool import Deferral, Ingredients, definition_json
from handrail.tools.tool import PLAIN_VIEW

def unexpected():
    raise AssertionError("no tool was called, so none is handed anything")

catalog = Catalog(Ingredients(entries=base_tools(lambda: catalog, unexpected), deferral=Deferral(mode="on")))
for tool in catalog.pool.active:
    definition_json(tool, PLAIN_VIEW)
catalog.search("wait", 3)
print(sorted({"pydantic", "pydantic_core", "handrail.builtin.sleep"} & sys.modules.keys()))
catalog.pool.find("Sleep")
print(sorted(name for name in sys.modules if name.startswith("handrail.builtin.")))
"""


@pytest.mark.proves("B4", "B1")
def test_a_tool_costs_no_import_until_it_is_called() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)

    before, after = done.stdout.splitlines()
    assert before == "[]"
    assert "'handrail.builtin.sleep'" in after
    assert "'handrail.builtin.glob'" not in after
