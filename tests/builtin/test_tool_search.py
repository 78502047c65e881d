"""ToolSearch: find what is held back, and load it."""

import pytest

from handrail.builtin.table import base_tools
from handrail.builtin.tool_search import ToolSearch
from handrail.conversation.blocks import Text, ToolReference
from handrail.errors import InputError
from handrail.session.services import default_services
from handrail.tools.catalog import Catalog, announcement
from handrail.tools.context import ToolContext
from handrail.tools.pool import Deferral, Ingredients

pytestmark = pytest.mark.anyio


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog(
        Ingredients(entries=base_tools(lambda: made, lambda: default_services({})), deferral=Deferral(mode="on"))
    )
    return made


@pytest.mark.proves("N15", "C7", "C8", "C9", "C10")
@pytest.mark.parametrize("query", ["select:Sleep", "pause briefly", "+sleep"])
async def test_what_is_found_is_referred_to_and_loaded_for_the_next_request(
    ctx: ToolContext, catalog: Catalog, query: str
) -> None:
    tool = catalog.pool.find("ToolSearch")
    assert isinstance(tool, ToolSearch)
    assert "Sleep" in announcement(catalog.pool)

    before = [tool.name for tool in catalog.pool.active]

    args = tool.parse({"query": query})
    output = await tool.call(args, ctx)

    assert tool.result_blocks(output) == (ToolReference("Sleep"),)
    assert [tool.name for tool in catalog.pool.active] == [*before, "Sleep"]
    assert "Sleep" not in announcement(catalog.pool)
    assert (tool.is_read_only(args), tool.is_concurrency_safe(args)) == (True, True)
    assert catalog.pool.find("ToolSearch") is tool, "a tool is made once"


@pytest.mark.proves("N15")
async def test_nothing_found_is_plain_text(ctx: ToolContext, catalog: Catalog) -> None:
    tool = ToolSearch(catalog)

    output = await tool.call(tool.parse({"query": "select:Nobody,Read"}), ctx)

    assert tool.result_blocks(output) == (Text("No tool fits 'select:Nobody,Read'. Try other words, or fewer."),)
    assert catalog.pool.activated == ()


def test_a_query_is_bounded(catalog: Catalog) -> None:
    with pytest.raises(InputError, match="at most 1000 characters"):
        ToolSearch(catalog).parse({"query": "x" * 1001})
