"""Tools that a pool knows without having loaded them."""

from handrail.tools.catalog import Catalog
from handrail.tools.pool import AnyTool, Deferral, Ingredients, Pool, ToolEntry, assemble, definition_json
from handrail.tools.schema import Input
from handrail.tools.stub import ToolStub
from handrail.tools.tool import PLAIN_VIEW, PromptView, Tool


class Written(Tool[Input]):
    input_model = Input

    def __init__(self, name: str) -> None:
        self.name = name

    def prompt(self, view: PromptView) -> str:
        return f"Use {self.name} \u201cwell\u201d."


class Shelf:
    """Gives stand-ins, and remembers what was taken from it."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def entry(self, name: str, *, aliases: tuple[str, ...] = (), deferred: bool = False) -> ToolEntry:
        tool = Written(name)

        def load() -> AnyTool:
            self.taken.append(name)
            return tool

        text, schema = tool.prompt(PLAIN_VIEW), tool.schema_json
        stub = ToolStub(name, text, schema, load, f"shelf.{name.lower()}", aliases, should_defer=deferred)
        return ToolEntry(name, lambda: stub)


def names(pool: Pool) -> list[str]:
    return [listed.name for listed in pool.listed]


def test_a_pool_orders_describes_holds_back_and_searches_without_loading() -> None:
    shelf = Shelf()
    entries = (shelf.entry("Write"), shelf.entry("Edit"), shelf.entry("Rare", deferred=True), shelf.entry("ToolSearch"))
    catalog = Catalog(Ingredients(entries=entries, deferral=Deferral(mode="on")))

    assert names(catalog.pool) == ["Edit", "Rare", "ToolSearch", "Write"]
    assert catalog.pool.deferred == ("Rare",)
    catalog.activate(catalog.search("rare", 1))
    assert [listed.name for listed in catalog.pool.active] == ["Edit", "ToolSearch", "Write", "Rare"]
    sent = [definition_json(tool, PLAIN_VIEW) for tool in catalog.pool.active]
    assert catalog.pool.modules() == ("shelf.edit", "shelf.rare", "shelf.toolsearch", "shelf.write")
    assert shelf.taken == []

    tools = tuple(map(Written, ("Write", "Edit", "ToolSearch")))
    assert sent[:-1] == [definition_json(tool, PLAIN_VIEW) for tool in assemble(Ingredients(custom=tools))]


def test_finding_a_tool_by_name_or_alias_loads_it_and_no_other() -> None:
    shelf = Shelf()
    pool = assemble(Ingredients(entries=(shelf.entry("Write", aliases=("Save",)), shelf.entry("Edit"))))

    assert isinstance(pool.find("Save"), Written)
    assert pool.find("Nothing") is None
    assert shelf.taken == ["Write"]


def test_a_pool_as_a_sequence_is_one_of_tools() -> None:
    shelf = Shelf()
    pool = assemble(Ingredients(entries=(shelf.entry("Write"), shelf.entry("Edit")), custom=(Written("Mine"),)))

    assert [type(tool) for tool in pool] == [Written, Written, Written]
    assert [tool.name for tool in pool[1:]] == ["Mine", "Write"]
