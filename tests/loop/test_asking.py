"""Requests are made from the pool and the history, and stay the same where nothing changed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import tool
from handrail.app.tools import make_catalog
from handrail.conversation.request import Request
from handrail.dispatch.results import ResultStore
from handrail.loop.asking import Tools, request_for
from handrail.loop.dialogue import Dialogue
from handrail.loop.setup import Setup
from handrail.testing import ScriptedModel
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.pool import AnyTool, Deferral, Ingredients


def made(name: str, *, deferred: bool) -> AnyTool:
    @tool(name=name, read_only=True, should_defer=deferred)
    async def something() -> str:
        """Do something."""
        return ""

    return something


PLAIN = [made(f"plain{n}", deferred=False) for n in range(3)]
HELD = [made(f"held{n}", deferred=True) for n in range(5)]


class Asking:
    def __init__(self) -> None:
        self.catalog = make_catalog(variables={}, custom=(*PLAIN, *HELD), deferral=Deferral(mode="on"))
        self.dialogue = Dialogue(self.catalog, RunContext(Path.cwd()), ResultStore(Path("results")))
        self.tools = Tools()

    def request(self) -> Request:
        return request_for(Setup(ScriptedModel([]), "m", ("system",)), self.dialogue, self.tools)  # type: ignore[arg-type]


@pytest.mark.proves("R5", "C1", "C8", "B17")
@given(st.lists(st.lists(st.sampled_from([each.name for each in HELD] + ["plain0", "unknown"])), max_size=6))
def test_finding_tools_moves_no_definition_and_only_appends_names(found: list[list[str]]) -> None:
    asking = Asking()
    before = asking.request()
    assert before.tools[before.last_builtin].name == "plain2"

    for names in found:
        asking.catalog.activate(names)
        request = asking.request()
        assert request.tools == before.tools
        assert request.last_builtin == before.last_builtin
        assert request.activated[: len(before.activated)] == before.activated
        before = request

    wanted = dict.fromkeys(name for names in found for name in names if name.startswith("held"))
    assert before.activated == tuple(wanted)


@pytest.mark.proves("R5")
def test_an_unchanged_pool_gives_the_same_objects() -> None:
    asking = Asking()

    assert asking.request().tools is asking.request().tools


def test_tools_that_are_never_held_back_are_not_marked() -> None:
    asking = Asking()
    asking.dialogue.catalog = Catalog(Ingredients(custom=(*PLAIN, *HELD), appended=("held1",)))

    request = asking.request()

    assert [each.name for each in request.tools if each.deferred] == []
    assert request.last_builtin == 7
