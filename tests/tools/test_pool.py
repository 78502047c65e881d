"""The pool of a request: who is in it, in which order, as which bytes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.errors import ToolDefinitionError
from handrail.tools.context import AgentType, RunContext, RunOptions
from handrail.tools.function import tool
from handrail.tools.permission import NoRules
from handrail.tools.pool import (
    AnyTool,
    Deferral,
    Environment,
    Ingredients,
    Pool,
    ToolEntry,
    assemble,
    definition_json,
    with_activated,
)
from handrail.tools.raw import RawTool
from handrail.tools.schema import Input
from handrail.tools.stub import ListedTool
from handrail.tools.tool import PLAIN_VIEW, McpInfo, PromptView, Tool


class Nothing(Input):
    pass


class Own(Tool[Nothing]):
    """A tool with whatever members a test needs."""

    input_model = Nothing

    def __init__(self, name: str, **members: Any) -> None:
        self.name = name
        self.enabled = True
        for member, value in members.items():
            setattr(self, member, value)

    def is_enabled(self) -> bool:
        return self.enabled

    def prompt(self, view: PromptView) -> str:
        return f"{self.name} with {', '.join(sorted(view.tools))}" if view.tools else self.name


class Served(RawTool):
    """A tool of an MCP server."""

    def __init__(self, name: str, server: str = "srv", *, text: str = "served", always_load: bool = False) -> None:
        super().__init__(name, {"type": "object"})
        self.mcp = McpInfo(server, name)
        self.always_load = always_load
        self.text = text

    def prompt(self, view: PromptView) -> str:
        return self.text


def entry(name: str, **conditions: Any) -> ToolEntry:
    made = Own(name)
    return ToolEntry(name, lambda: made, **conditions)


def own(*names: str) -> tuple[ToolEntry, ...]:
    return tuple(map(entry, names))


def served(*names: str) -> tuple[AnyTool, ...]:
    return tuple(map(Served, names))


def names(tools: Sequence[ListedTool]) -> list[str]:
    return [tool.name for tool in tools]


def wire(pool: Pool) -> bytes:
    return b"[" + b",".join([definition_json(tool, PLAIN_VIEW) for tool in pool.active]) + b"]"


ON = Deferral(mode="on")
SEARCH = (ToolEntry("ToolSearch", lambda: Own("ToolSearch")),)


@pytest.mark.proves("A36", "B15", "B16")
def test_own_tools_come_first_then_mcp_tools_each_sorted_by_name() -> None:
    pool = assemble(
        Ingredients(entries=own("Write", "Bash"), custom=(Own("Notes"),), mcp=served("mcp__b__x", "Apple", "mcp__a__y"))
    )

    assert names(pool) == names(pool.active) == ["Bash", "Notes", "Write", "Apple", "mcp__a__y", "mcp__b__x"]
    assert pool.own_count == 3
    assert (len(pool), pool[0].name, names(pool[1:3])) == (6, "Bash", ["Notes", "Write"])
    with pytest.raises(TypeError):
        pool[0] = pool[1]  # type: ignore[index]  # a pool never changes


@pytest.mark.proves("R5", "B16")
@settings(max_examples=settings().max_examples // 3)
@given(st.permutations(["Bash", "Edit", "Read"]), st.permutations(["mcp__a__x", "mcp__a__y", "mcp__b__x", "mcp__c__x"]))
def test_the_bytes_do_not_depend_on_the_order_in_which_tools_were_found(a: list[str], b: list[str]) -> None:
    expected = assemble(Ingredients(entries=own("Bash", "Edit", "Read"), mcp=served(*sorted(b))))

    assert wire(assemble(Ingredients(entries=own(*a), mcp=served(*b)))) == wire(expected)
    assert wire(assemble(Ingredients(custom=tuple(map(Own, a)), mcp=served(*b)))) == wire(expected)


@pytest.mark.proves("R5")
@given(st.permutations(["one", "two", "three"]))
def test_which_of_two_mcp_tools_of_one_name_is_kept_does_not_depend_on_who_came_first(servers: list[str]) -> None:
    pool = assemble(Ingredients(mcp=tuple(Served("mcp__x", server, text=server) for server in servers)))

    assert [tool.mcp for tool in pool] == [McpInfo("one", "mcp__x")]


@pytest.mark.proves("B18", "B22")
def test_a_name_occurs_once_and_the_built_in_one_wins() -> None:
    mine, theirs = Own("Read"), Served("Read")
    pool = assemble(
        Ingredients(entries=(ToolEntry("Read", lambda: mine),), custom=(Own("Read"), Own("Mine")), mcp=(theirs,))
    )

    assert pool.listed == (pool.find("Mine"), mine)


@pytest.mark.proves("B18")
def test_a_server_cannot_take_an_old_name_of_a_built_in_either() -> None:
    pool = assemble(Ingredients(custom=(Own("Glob", aliases=("LS",)),), mcp=served("LS", "mcp__a__b")))

    assert names(pool) == ["Glob", "mcp__a__b"]
    assert pool.find("LS") is pool.find("Glob")


@pytest.mark.proves("A3", "B19")
def test_a_tool_is_found_by_its_name_or_by_an_old_one_and_names_win() -> None:
    read = Own("Read", aliases=("FileRead", "Open"))
    opening = Own("Open")
    early = Own("Aaa", aliases=("FileRead",))
    pool = assemble(Ingredients(custom=(opening, read)))

    assert pool.find("Read") is pool.find("FileRead") is read
    assert pool.find("Open") is opening
    assert pool.find("open") is None
    assert set(pool.names()) == {"Read", "FileRead", "Open"}
    assert assemble(Ingredients(custom=(read, early))).find("FileRead") is early


@pytest.mark.proves("B11", "B12", "A13")
def test_the_default_set_has_every_tool_that_can_work_here() -> None:
    pool = assemble(Ingredients(entries=own("Read"), custom=(Own("Off", enabled=False), Own("On"))))

    assert names(pool) == ["On", "Read"]
    assert pool.find("Off") is None


def test_a_disabled_built_in_leaves_its_name_to_others() -> None:
    off = Own("Read", enabled=False)
    mine = Own("Read")

    assert assemble(Ingredients(entries=(ToolEntry("Read", lambda: off),), custom=(mine,))).listed == (mine,)


FAMILY = (
    entry("Read", simple=True),
    entry("CronCreate", feature="triggers"),
    entry("CronDelete", feature="triggers"),
    entry("Repl", when=lambda environment: environment.variables.get("USER_TYPE") == "internal"),
    entry("AskUser", when=lambda environment: environment.interactive),
)


@pytest.mark.proves("B2", "B3", "B8")
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param(Environment(), ["Read"], id="core tools only"),
        pytest.param(
            Environment(features=frozenset({"triggers"})), ["CronCreate", "CronDelete", "Read"], id="a whole family"
        ),
        pytest.param(Environment(variables={"USER_TYPE": "internal"}), ["Read", "Repl"], id="an environment variable"),
        pytest.param(Environment(interactive=True), ["AskUser", "Read"], id="somebody is there"),
        pytest.param(
            Environment(features=frozenset({"triggers"}), interactive=True, simple=True), ["Read"], id="simple mode"
        ),
    ],
)
def test_features_variables_and_the_kind_of_run_decide_which_tools_exist(
    environment: Environment, expected: list[str]
) -> None:
    assert names(assemble(Ingredients(entries=FAMILY, environment=environment))) == expected


@pytest.mark.proves("B4")
def test_a_tool_that_is_not_wanted_is_never_loaded() -> None:
    def explode() -> AnyTool:
        raise AssertionError("loaded")

    entries = (
        ToolEntry("Gated", explode, feature="off"),
        ToolEntry("Conditional", explode, when=lambda environment: False),
        ToolEntry("Denied", explode),
        ToolEntry("ToolSearch", explode),
    )

    assert len(assemble(Ingredients(entries=entries, denied=lambda name, mcp: name == "Denied"))) == 0


@pytest.mark.proves("B13")
def test_denied_tools_are_not_there_whoever_offers_them() -> None:
    def denied(name: str, mcp: McpInfo | None) -> bool:
        return name in {"Bash", "mcp__a__x"} or (mcp is not None and mcp.server == "bad")

    pool = assemble(
        Ingredients(
            entries=own("Bash", "Read"),
            custom=(Own("Bash"),),
            mcp=(Served("mcp__a__x"), Served("mcp__a__y"), Served("mcp__bad__z", "bad")),
            denied=denied,
        )
    )

    assert names(pool) == ["Read", "mcp__a__y"]
    assert pool.find("Bash") is None


def test_an_entry_cannot_load_a_tool_of_another_name_past_the_deny_filter() -> None:
    with pytest.raises(ToolDefinitionError, match="The entry 'Fine' loads a tool called 'Bash'"):
        assemble(Ingredients(entries=(ToolEntry("Fine", lambda: Own("Bash")),)))


@pytest.mark.proves("B22")
def test_a_function_a_class_and_a_servers_tool_stand_in_one_pool() -> None:
    @tool
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    pool = assemble(Ingredients(entries=own("Read"), custom=(shout,), mcp=served("mcp__a__b")))

    assert json.loads(wire(pool)) == [
        {"name": "Read", "description": "Read", "input_schema": Own("Read").input_schema},
        {"name": "shout", "description": "Shout.", "input_schema": shout.input_schema},
        {"name": "mcp__a__b", "description": "served", "input_schema": {"type": "object"}},
    ]


@pytest.mark.proves("A11", "M1", "M6")
def test_the_view_of_a_run_reaches_the_texts_without_the_tools_of_servers(run: RunContext) -> None:
    run = replace(
        run,
        options=RunOptions(interactive=True, agents=lambda: (AgentType("Explore"),)),
        policy=lambda _run: NoRules(version=3, mode="plan"),
    )
    pool = assemble(Ingredients(entries=own("Read", "Edit"), mcp=served("mcp__a__b")))

    view = pool.view(run)

    assert view == PromptView(True, frozenset({"Read", "Edit"}), (AgentType("Explore"),), view.permissions)
    assert view.mode == "plan"
    assert json.loads(definition_json(pool.active[0], view))["description"] == "Edit with Edit, Read"
    assert definition_json(pool.active[0], view) != definition_json(pool.active[0], PLAIN_VIEW)


# Deferral


def deferring(deferral: Deferral, *mcp: AnyTool, custom: tuple[AnyTool, ...] = ()) -> Pool:
    return assemble(Ingredients(entries=(*own("Read"), *SEARCH), custom=custom, mcp=mcp, deferral=deferral))


@pytest.mark.proves("C1", "C5", "A22")
def test_deferred_tools_go_out_as_names_and_not_as_definitions() -> None:
    custom = (Own("Cron", should_defer=True), Own("Mine", always_load=True), Own("Seldom"))
    pool = deferring(ON, *served("mcp__a__x", "mcp__a__y"), custom=custom)

    assert names(pool.active) == ["Mine", "Read", "ToolSearch"]
    assert pool.deferred == ("Cron", "Seldom", "mcp__a__x", "mcp__a__y")
    assert b"mcp__a__x" not in wire(pool)
    assert pool.find("mcp__a__x") is not None, "a blind call finds it"


@pytest.mark.proves("C2")
@pytest.mark.parametrize(("count", "held"), [(2, 3), (3, 0)])
def test_holding_back_starts_above_a_number_of_tools(count: int, held: int) -> None:
    pool = deferring(Deferral(mode="auto", count=count), *served("mcp__a", "mcp__b", "mcp__c"))

    assert len(pool.deferred) == held


@pytest.mark.proves("C2", "B7")
@pytest.mark.parametrize(("count", "sent"), [(2, ["Read", "ToolSearch"]), (3, ["Read", "a", "b", "c"])])
def test_the_callers_own_tools_wait_above_that_number_and_only_then_is_there_a_search(
    count: int, sent: list[str]
) -> None:
    pool = deferring(Deferral(mode="auto", count=count), custom=(Own("a"), Own("b"), Own("c")))

    assert names(pool.active) == sent


@pytest.mark.proves("C2")
@pytest.mark.parametrize(("length", "held"), [(1000, 0), (2000, 1)])
def test_holding_back_starts_above_a_share_of_the_context(length: int, held: int) -> None:
    deferral = Deferral(mode="auto", count=10, share=0.1, context_chars=15_000)

    assert len(deferring(deferral, Served("mcp__a", text="x" * length)).deferred) == held


@pytest.mark.proves("C3", "A23", "N15")
def test_always_load_wins_and_the_search_itself_is_never_held_back() -> None:
    searching = Own("ToolSearch", should_defer=True)
    pool = assemble(
        Ingredients(
            custom=(searching, Own("Both", should_defer=True, always_load=True)),
            mcp=(Served("mcp__a", always_load=True), Served("mcp__b")),
            deferral=ON,
        )
    )

    assert names(pool.active) == ["Both", "ToolSearch", "mcp__a"]
    assert pool.deferred == ("mcp__b",)


@pytest.mark.proves("B7")
def test_the_search_is_there_only_when_something_can_be_held_back() -> None:
    off = deferring(Deferral(mode="off"), *served("mcp__a"))
    assert names(off.active) == ["Read", "mcp__a"]
    assert names(deferring(Deferral(mode="auto"), *served("mcp__a")).active) == ["Read", "ToolSearch", "mcp__a"]


def test_without_the_search_nothing_is_held_back_because_nobody_could_load_it() -> None:
    pool = assemble(
        Ingredients(entries=SEARCH, mcp=served("mcp__a"), deferral=ON, denied=lambda name, mcp: name == "ToolSearch")
    )

    assert names(pool.active) == ["mcp__a"]
    assert pool.deferred == ()


@pytest.mark.proves("C7", "C8", "R5")
@given(st.permutations([f"mcp__{letter}" for letter in "abcde"]), st.integers(0, 5))
def test_activation_only_appends_in_the_order_of_finding(order: list[str], known: int) -> None:
    what = Ingredients(
        entries=(*own("Read"), *SEARCH), mcp=(*served(*order), Served("mcp__zz", always_load=True)), deferral=ON
    )
    before = wire(assemble(what))
    for number, name in enumerate(order[:known], 1):
        what = with_activated(what, [name, name])
        pool = assemble(what)
        after = wire(pool)

        assert after.startswith(before[:-1])
        assert names(pool.active)[3:] == order[:number]
        assert name not in pool.deferred
        assert pool.own_count == 2
        before = after


def test_activating_what_does_not_exist_changes_nothing() -> None:
    what = Ingredients(entries=SEARCH, mcp=served("mcp__a"), deferral=ON)

    assert wire(assemble(with_activated(what, ["nobody", "ToolSearch"]))) == wire(assemble(what))
