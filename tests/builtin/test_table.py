"""The one list of built-in tools, and their schemas as they go out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.app.state import plain_outfit
from handrail.builtin.table import base_tools
from handrail.tools.catalog import Catalog
from handrail.tools.pool import AnyTool, Deferral, Environment, Ingredients, Pool, assemble, serialise
from handrail.tools.tool import PLAIN_VIEW

SNAPSHOT = Path(__file__).with_name("schemas.json")
AUTO = Deferral(mode="auto")


def everything() -> Pool:
    catalog = Catalog(Ingredients(entries=base_tools(lambda: catalog, lambda: plain_outfit({})), deferral=AUTO))
    return catalog.pool


@pytest.mark.proves("B1", "B12")
def test_the_list_names_every_built_in_tool_and_there_is_no_other() -> None:
    folder = Path(sys.modules["handrail.builtin"].__path__[0])
    modules = {path.stem for path in folder.glob("*.md")} | {path.parent.name for path in folder.glob("*/*.md")}

    assert [tool.name for tool in everything()] == [
        *("Edit", "Glob", "Grep", "NotebookEdit", "Read", "Sleep", "ToolSearch", "Write")
    ]
    assert {type(tool).__module__.split(".")[2] for tool in everything()} == modules


@pytest.mark.proves("A8", "R5")
def test_the_definitions_are_what_they_were() -> None:
    """A change here costs every user's prompt cache: update the file on purpose (delete it and run twice)."""
    definitions = json.dumps(json.loads(serialise(everything().definitions(PLAIN_VIEW))), indent=2) + "\n"
    if not SNAPSHOT.exists():
        SNAPSHOT.write_text(definitions)
        pytest.fail(f"{SNAPSHOT.name} was written; look at it and run again")

    assert definitions == SNAPSHOT.read_text()


@pytest.mark.parametrize("tool", everything(), ids=lambda tool: tool.name)
def test_every_field_of_every_tool_is_described_and_nothing_else_is_accepted(tool: AnyTool) -> None:
    schema = tool.input_schema
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert all(field.get("description") for field in schema["properties"].values())


def test_simple_mode_has_the_small_set() -> None:
    what = Ingredients(
        entries=base_tools(lambda: Catalog(Ingredients()), lambda: plain_outfit({})),
        environment=Environment(simple=True),
    )

    assert [tool.name for tool in assemble(what)] == ["Edit", "Glob", "Grep", "Read", "Write"]


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
from handrail.tools.pool import Deferral, Ingredients, assemble

def loaded():
    return sorted({".".join(name.split(".")[:3]) for name in sys.modules
                   if name.startswith("handrail.builtin.") and "outfit" not in name})

catalog = Catalog(Ingredients(
    entries=base_tools(lambda: catalog, lambda: None),
    denied=lambda name, mcp: name != "Read",
    deferral=Deferral(mode="off"),
))
print(loaded())
catalog.pool
print(loaded())
"""


@pytest.mark.proves("B4", "B1")
def test_a_tool_costs_no_import_until_it_is_in_the_pool() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [
        "['handrail.builtin.table']",
        "['handrail.builtin.read', 'handrail.builtin.table']",
    ]
