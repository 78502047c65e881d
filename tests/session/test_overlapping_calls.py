"""Calls that come one by one share an executor while they overlap."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import ToolUse
from handrail.errors import HandrailError
from handrail.session import overlapping_calls
from handrail.session.build import open_session
from handrail.session.no_model import NoModel
from handrail.session.overlapping_calls import OverlappingCalls
from handrail.session.session import Session
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.testing import GatedTool, VirtualTimeLoop
from handrail.tools.outcome import Status

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": VirtualTimeLoop}


def session_with(*tools: GatedTool, folder: Path) -> Session:
    flags = SettingsFlags(sources=(), allowed=tuple(tool.name for tool in tools))
    spec = SessionSpec(cwd=folder, tools=ToolOptions(tools, builtin=()), flags=flags, keep_files=False)
    return open_session(spec, {}, SessionHost(model=NoModel()))


async def test_the_next_call_after_many_waits_until_they_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlapping_calls, "MAX_CALLS", 2)
    gated = GatedTool()
    session = session_with(gated, folder=tmp_path)
    calls = OverlappingCalls(session, session.conversation.state)

    running = [asyncio.create_task(calls.run(ToolUse(name, "Gated", {}))) for name in "abc"]
    await asyncio.sleep(1)
    assert gated.started == ["a", "b"]

    gated.open_all("a")
    await asyncio.sleep(1)
    assert gated.started == ["a", "b"]

    gated.open_all("b", "c")
    assert [(await each).status for each in running] == [Status.OK] * 3
    await session.aclose()


async def test_a_tool_that_comes_while_others_run_can_be_called(tmp_path: Path) -> None:
    gated, late = GatedTool(), GatedTool("Late")
    session = session_with(gated, folder=tmp_path)
    calls = OverlappingCalls(session, session.conversation.state)

    first = asyncio.create_task(calls.run(ToolUse("a", "Gated", {})))
    await asyncio.sleep(1)
    session.conversation.state.catalog.add((late,))
    second = asyncio.create_task(calls.run(ToolUse("b", "Late", {})))
    await asyncio.sleep(1)
    gated.open_all("a")
    late.open_all("b")

    assert [(await each).status for each in (first, second)] == [Status.OK] * 2
    await session.aclose()


async def test_a_call_that_fails_stops_no_other(tmp_path: Path) -> None:
    shell = GatedTool("Shell", shared=False, error_cancels_siblings=True)
    shell.failing.add("a")
    session = session_with(shell, folder=tmp_path)
    calls = OverlappingCalls(session, session.conversation.state)

    running = [asyncio.create_task(calls.run(ToolUse(name, "Shell", {}))) for name in "ab"]
    shell.open_all("a", "b")

    assert [(await each).status for each in running] == [Status.ERROR, Status.OK]
    await session.aclose()


async def test_closing_stops_the_calls_that_run_and_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlapping_calls, "MAX_CALLS", 1)
    gated = GatedTool()
    session = session_with(gated, folder=tmp_path)
    calls = OverlappingCalls(session, session.conversation.state)
    running, waiting = (asyncio.create_task(calls.run(ToolUse(name, "Gated", {}))) for name in "ab")
    await asyncio.sleep(1)

    await calls.aclose()

    assert (await running).status is Status.CANCELLED
    with pytest.raises(HandrailError, match="Gated was not run: its session was closed"):
        await waiting
    await session.aclose()
