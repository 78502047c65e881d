"""The catalog of a run: refreshing, searching, activating, announcing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.builtin.tool_search import ToolSearch
from handrail.tools.catalog import MAX_ANNOUNCED, Catalog, announcement
from handrail.tools.function import tool
from handrail.tools.pool import AnyTool, Deferral, Ingredients, Pool, ToolEntry, definition_json
from handrail.tools.raw import RawTool
from handrail.tools.tool import PLAIN_VIEW, McpInfo, PromptView


class Served(RawTool):
    """A tool of an MCP server."""

    def __init__(self, server: str, name: str, text: str = "served") -> None:
        super().__init__(f"mcp__{server}__{name}", {"type": "object"})
        self.mcp = McpInfo(server, name)
        self.text = text

    def prompt(self, view: PromptView) -> str:
        return self.text


@tool(should_defer=True, search_hint="wait until later on")
def nap() -> None:
    """Sleep for a while."""


@tool(always_load=True)
def work() -> None:
    """Do something."""


@tool(always_load=True)
def zap() -> None:
    """The last of the own tools."""


def server(name: str, count: int = 3) -> tuple[AnyTool, ...]:
    return tuple(Served(name, f"t{number}") for number in range(count))


def catalog(*mcp: AnyTool, deferral: Deferral) -> Catalog:
    made = Catalog(
        Ingredients(
            entries=(ToolEntry("ToolSearch", lambda: ToolSearch(made)),),
            custom=(nap, work, zap),
            mcp=mcp,
            deferral=deferral,
        )
    )
    return made


def wire(pool: Pool, count: int | None = None) -> bytes:
    return b"[" + b",".join([definition_json(tool, PLAIN_VIEW) for tool in pool.active[:count]]) + b"]"


ON = Deferral(mode="on")


@pytest.mark.proves("C7", "C8")
def test_what_was_found_is_sent_in_full_from_the_next_request_on() -> None:
    tools = catalog(*server("a"), deferral=ON)
    before = tools.pool

    tools.activate(["mcp__a__t1", "nobody", "work"])

    assert before.deferred == ("nap", "mcp__a__t0", "mcp__a__t1", "mcp__a__t2"), "a pool never changes"
    assert [tool.name for tool in tools.pool.active] == ["ToolSearch", "work", "zap", "mcp__a__t1"]
    assert tools.pool.activated == ("mcp__a__t1",)


@pytest.mark.proves("R5")
def test_when_nothing_changed_the_pool_is_the_same_object() -> None:
    mcp = server("a")
    tools = catalog(*mcp, deferral=ON)
    pool = tools.pool

    tools.activate([])
    tools.activate(["work"])
    tools.refresh(mcp=mcp)

    assert tools.pool is pool


@pytest.mark.proves("B21")
def test_the_tools_of_a_run_can_change() -> None:
    tools = catalog(deferral=Deferral(mode="off"))
    assert tools.pool.find("mcp__a__t0") is None

    tools.refresh(mcp=server("a", 1))
    assert tools.pool.find("mcp__a__t0") is not None

    tools.refresh(mcp=())
    assert tools.pool.find("mcp__a__t0") is None


@pytest.mark.proves("R5", "B21")
@pytest.mark.parametrize("mode", ["off", "auto", "on"])
@settings(max_examples=settings().max_examples // 3)
@given(st.data())
def test_a_server_that_flaps_keeps_its_places_and_everybody_elses(mode: str, data: st.DataObject) -> None:
    servers = {name: server(name) for name in "abc"}
    tools = catalog(
        *sum(servers.values(), ()),
        deferral=Deferral(mode=mode, count=data.draw(st.integers(0, 12))),  # type: ignore[arg-type]  # one of the three
    )
    found = data.draw(st.lists(st.sampled_from([tool.name for some in servers.values() for tool in some]), unique=True))
    tools.activate(found)
    before = tools.pool
    own = wire(before, before.own_count)[:-1]

    for _ in range(3):
        here = data.draw(st.sets(st.sampled_from("abc")))
        tools.refresh(mcp=sum((servers[name] for name in sorted(here)), ()))
        assert wire(tools.pool).startswith(own)
    tools.refresh(mcp=sum(servers.values(), ()))

    assert wire(tools.pool) == wire(before)
    assert tools.pool.deferred == before.deferred


@pytest.mark.proves("R5", "C2")
def test_holding_back_that_begins_in_the_middle_of_a_run_moves_nothing_that_was_sent() -> None:
    tools = catalog(*server("a", 2), deferral=Deferral(mode="auto", count=5))
    before = wire(tools.pool)
    assert b'"nap"' in before

    tools.refresh(mcp=(*server("a", 2), *server("b", 9)))

    assert wire(tools.pool) == before
    assert len(tools.pool.deferred) == 9
    tools.activate(["mcp__b__t3"])
    tools.refresh(mcp=server("b", 9))
    tools.refresh(mcp=(*server("a", 2), *server("b", 9)))
    assert wire(tools.pool).startswith(before[:-1])
    assert [tool.name for tool in tools.pool.active][-1] == "mcp__b__t3"


@pytest.mark.proves("C10")
def test_the_search_covers_what_waits_or_waited_and_follows_a_refresh() -> None:
    tools = catalog(Served("mail", "send", "Send a letter to somebody"), deferral=ON)

    assert tools.search("letter", 5) == ["mcp__mail__send"]
    assert tools.search("later", 5) == ["nap"], "found by its hint"
    assert tools.search("select:work", 5) == [], "it is loaded anyway"
    tools.activate(["nap"])
    assert tools.search("select:nap", 5) == ["nap"], "asked for again, it is found again"

    tools.refresh(mcp=(Served("mail", "burn", "Burn a letter"),))
    assert tools.search("letter", 5) == ["mcp__mail__burn"]


@pytest.mark.proves("C6")
def test_the_names_of_deferred_tools_are_announced() -> None:
    tools = catalog(*server("a", 2), deferral=ON)
    assert announcement(tools.pool).split("\n")[1:] == ["nap", "mcp__a__t0", "mcp__a__t1"]
    assert "ToolSearch" in announcement(tools.pool).split("\n")[0]

    tools.activate(["nap", "mcp__a__t0"])
    assert announcement(tools.pool).split("\n")[1:] == ["mcp__a__t1"]

    assert announcement(catalog(*server("a", 2), deferral=Deferral(mode="off")).pool) == ""


@pytest.mark.proves("C6", "R6")
def test_the_announcement_of_very_many_tools_stays_short() -> None:
    many = catalog(*server("a", 150), *server("b", 151), deferral=ON)
    assert announcement(many.pool).split("\n")[1:] == [
        "nap",
        "150 tools of the MCP server a",
        "151 tools of the MCP server b",
    ]

    servers = [Served(f"s{number}", "t") for number in range(1000)]
    lines = announcement(catalog(*servers, deferral=ON).pool).split("\n")
    assert len(lines) == MAX_ANNOUNCED + 2
    assert lines[-1] == "and 801 more lines of this kind"
