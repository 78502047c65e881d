"""Requests are made from the pool and the history, and stay the same where nothing changed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import tool
from handrail.conversation.request import History, Request, ToolDefinition
from handrail.dispatch.results import ResultStore
from handrail.loop.conversation_state import ConversationState
from handrail.loop.events import RequestSent
from handrail.loop.facts import RequestFacts
from handrail.loop.requests import ToolDefinitions, build_request
from handrail.loop.run_config import RunConfig
from handrail.loop.state import Why
from handrail.session.tools import make_catalog
from handrail.testing import ScriptedModel
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.pool import AnyTool, Deferral, Ingredients


def made(name: str, *, deferred: bool) -> AnyTool:
    @tool(name=name, read_only=True, should_defer=deferred, always_load=not deferred)
    async def something() -> str:
        """Do something."""
        return ""

    return something


PLAIN = [made(f"plain{n}", deferred=False) for n in range(3)]
HELD = [made(f"held{n}", deferred=True) for n in range(5)]


class Requests:
    def __init__(self) -> None:
        self.catalog = make_catalog(variables={}, custom=(*PLAIN, *HELD), deferral=Deferral(mode="on"))
        self.conversation = ConversationState(self.catalog, RunContext(Path.cwd()), ResultStore(Path("results")))
        self.tools = ToolDefinitions()

    def request(self) -> Request:
        return build_request(RunConfig(ScriptedModel([]), "m", ("system",)), self.conversation, self.tools)  # type: ignore[arg-type]


@pytest.mark.proves("R5", "C1", "C8", "B17")
@given(st.lists(st.lists(st.sampled_from([each.name for each in HELD] + ["plain0", "unknown"])), max_size=6))
def test_finding_tools_moves_no_definition_and_only_appends_names(found: list[list[str]]) -> None:
    requests = Requests()
    before = requests.request()
    assert before.tools[before.last_builtin].name == "plain2"

    for names in found:
        requests.catalog.activate(names)
        request = requests.request()
        assert request.tools == before.tools
        assert request.last_builtin == before.last_builtin
        assert request.activated[: len(before.activated)] == before.activated
        before = request

    wanted = dict.fromkeys(name for names in found for name in names if name.startswith("held"))
    assert before.activated == tuple(wanted)


@pytest.mark.proves("R5")
def test_an_unchanged_pool_gives_the_same_objects() -> None:
    requests = Requests()

    assert requests.request().tools is requests.request().tools


def test_tools_that_are_never_held_back_are_not_marked() -> None:
    requests = Requests()
    requests.conversation.catalog = Catalog(Ingredients(custom=(*PLAIN, *HELD), appended=("held1",)))

    request = requests.request()

    assert [each.name for each in request.tools if each.deferred] == []
    assert request.last_builtin == 7


def test_the_facts_of_a_request_name_the_prefix_that_it_has() -> None:
    system, one = ("Be brief.",), (ToolDefinition("A", b"a"),)
    two = (*one, ToolDefinition("B", b"b"))
    requests = [
        Request("m", History(), system, one),
        Request("m", History(), system, one),
        Request("m", History(), system, two),
        Request("m", History(), ("Be long.",), two),
        Request("m", History(), system, one),
    ]
    sent = [RequestSent(request, 1, Why.PROMPT) for request in requests]
    of_run = RequestFacts()

    facts = [of_run.of(each) for each in sent]

    assert facts == [RequestFacts().of(each) for each in sent]
    assert [each["prefix"] == facts[0]["prefix"] for each in facts] == [True, True, False, False, True]
