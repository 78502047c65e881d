"""What the app wires together."""

import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail.conversation.blocks import Json, ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import Rails
from handrail.session.gate import open_gate
from handrail.session.redactor import redactor_for
from handrail.session.settings.session_settings import open_settings
from handrail.session.spec import print_warning
from handrail.session.state_folder import result_store, state_folder
from handrail.session.tools import make_catalog
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.function import tool
from handrail.tools.outcome import Outcome
from handrail.tools.pool import Deferral
from tests.opening import NO_FILES


async def call(catalog: Catalog, name: str, raw: Json, folder: Path, env: Mapping[str, str]) -> Outcome:
    """One call through the executor and the gate of a session without settings."""
    settings = open_settings(folder, env, state_folder(env), NO_FILES, print_warning)
    rails, store = Rails(open_gate(settings, redactor=redactor_for(env))), result_store(env)
    async with ToolExecutor(
        catalog.pool, RunContext(folder), store, rails=rails, activate=catalog.activate
    ) as executor:
        executor.add(ToolUse("call-1", name, raw))
        return await anext(executor.rest())


@pytest.mark.proves("B7")
def test_tool_search_is_offered_only_where_something_can_be_held_back() -> None:
    assert make_catalog(variables={}, deferral=Deferral(mode="on")).pool.find("ToolSearch")
    assert not make_catalog(variables={}, deferral=Deferral(mode="auto")).pool.find("ToolSearch")
    assert not make_catalog(variables={}, deferral=Deferral(mode="off")).pool.find("ToolSearch")


@pytest.mark.proves("B8")
def test_simple_mode_has_the_small_set() -> None:
    pool = make_catalog(variables={"HANDRAIL_SIMPLE": "1"}, deferral=Deferral(mode="off")).pool

    assert [each.name for each in pool] == ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]


@pytest.mark.anyio
@pytest.mark.proves("C7", "C8")
async def test_a_search_through_the_executor_loads_the_definition_for_the_next_request(tmp_path: Path) -> None:
    catalog = make_catalog(variables={}, deferral=Deferral(mode="on"))
    before = catalog.pool
    assert "Sleep" in before.deferred

    outcome = await call(catalog, "ToolSearch", {"query": "select:Sleep"}, tmp_path, {})

    assert [block.name for block in outcome.result.content] == ["Sleep"]  # type: ignore[union-attr]  # references only
    assert [each.name for each in catalog.pool.active] == [*(each.name for each in before.active), "Sleep"]


@pytest.mark.anyio
@pytest.mark.proves("I9", "R6")
async def test_a_big_result_is_kept_in_the_owners_state_folder(tmp_path: Path) -> None:
    @tool(read_only=True)
    async def shout() -> str:
        """Say a lot."""
        return "loud " * 20_000

    catalog = make_catalog(variables={}, custom=(shout,))

    outcome = await call(catalog, "shout", {}, tmp_path, {"HANDRAIL_STATE_DIR": str(tmp_path / "state")})

    [kept] = (tmp_path / "state").glob("results/*/*.txt")
    assert kept.read_text() == "loud " * 20_000
    assert str(kept) in outcome.result.text
    assert len(outcome.result.text) < 3_000
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_the_state_folder_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)

    assert state_folder({"HANDRAIL_STATE_DIR": "~/elsewhere"}) == tmp_path / "elsewhere"
    assert state_folder({}).is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []
