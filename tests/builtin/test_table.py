"""The one list of built-in tools, and their schemas as they go out."""

import subprocess
import sys
from pathlib import Path

import pytest

from handrail.app.state import plain_outfit
from handrail.builtin.definitions import FILE, is_fixed, written
from handrail.builtin.table import base_tools
from handrail.tools.catalog import Catalog
from handrail.tools.pool import AnyTool, Deferral, Environment, Ingredients, Pool, assemble, definition_json
from handrail.tools.schema import Input
from handrail.tools.stand_in import loaded
from handrail.tools.tool import PLAIN_VIEW, PromptView, Tool

AUTO = Deferral(mode="auto")
EVERY = Environment(features=frozenset({"agents"}))


def everything() -> Pool:
    catalog = Catalog(
        Ingredients(entries=base_tools(lambda: catalog, lambda: plain_outfit({})), environment=EVERY, deferral=AUTO)
    )
    return catalog.pool


@pytest.mark.proves("B1", "B12")
def test_the_list_names_every_built_in_tool_and_there_is_no_other() -> None:
    folder = Path(sys.modules["handrail.builtin"].__path__[0])
    prompts = {path.parent.name if path.stem == "tool" else path.stem for path in folder.rglob("*.md")}
    modules = {type(tool).__module__.removesuffix(".tool").rpartition(".")[2] for tool in everything()}

    assert [tool.name for tool in everything()] == [
        "Agent",
        "Bash",
        "Edit",
        "Glob",
        "Grep",
        "Monitor",
        "NotebookEdit",
        "Read",
        "Sleep",
        "TaskOutput",
        "TaskStop",
        "ToolSearch",
        "Write",
    ]
    assert modules == prompts


@pytest.mark.proves("A8", "R5")
def test_the_definitions_are_those_that_were_written_down() -> None:
    """A change here costs every user's prompt cache: make it on purpose, and look at the difference."""
    assert FILE.read_text("utf-8") == written(everything()), "if the change is meant, run: make definitions"


@pytest.mark.proves("R5")
@pytest.mark.parametrize("view", [PLAIN_VIEW, PromptView(True, "plan", frozenset({"Read"}), ("helper",))])
def test_a_tool_that_is_not_loaded_is_described_by_the_same_bytes(view: PromptView) -> None:
    pool = everything()

    for listed in pool.listed:
        assert definition_json(listed, view) == definition_json(loaded(listed), view), listed.name


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
    assert written([tool]) == "{}\n"


@pytest.mark.parametrize("tool", everything(), ids=lambda tool: tool.name)
def test_every_field_of_every_tool_is_described_and_nothing_else_is_accepted(tool: AnyTool) -> None:
    schema = tool.input_schema
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert all(field.get("description") for field in schema["properties"].values())


def test_what_is_sent_with_every_request_stays_small() -> None:
    sent = [definition_json(tool, PLAIN_VIEW) for tool in everything() if not tool.should_defer]

    assert sum(map(len, sent)) <= 15_000


def test_simple_mode_has_the_small_set() -> None:
    what = Ingredients(
        entries=base_tools(lambda: Catalog(Ingredients()), lambda: plain_outfit({})),
        environment=Environment(simple=True),
    )

    assert [tool.name for tool in assemble(what)] == ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]


@pytest.mark.proves("B6")
@pytest.mark.parametrize(("value", "there"), [("", True), ("0", True), ("1", False), ("true", False)])
def test_our_search_gives_way_to_one_that_the_shell_brings(value: str, there: bool) -> None:
    what = Ingredients(
        entries=base_tools(lambda: Catalog(Ingredients()), lambda: plain_outfit({})),
        environment=Environment(variables={"HANDRAIL_EMBEDDED_SEARCH": value} if value else {}),
    )

    names = {tool.name for tool in assemble(what)}

    assert ({"Glob", "Grep"} <= names) is there
    assert names.isdisjoint({"Glob", "Grep"}) is not there
    assert "Read" in names


LAZY = """
import sys
from handrail.builtin.table import base_tools
from handrail.tools.catalog import Catalog
from handrail.tools.pool import Deferral, Ingredients
from handrail.tools.tool import PLAIN_VIEW

def unexpected():
    raise AssertionError("no tool was called, so none is handed anything")

catalog = Catalog(Ingredients(entries=base_tools(lambda: catalog, unexpected), deferral=Deferral(mode="on")))
catalog.pool.definitions(PLAIN_VIEW)
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
