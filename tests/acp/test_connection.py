"""The connection and the updates by themselves: what only happens in some orders, or with very long lines."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.acp.connection import EditorConnection, MethodResult
from handrail.acp.updates import SessionUpdates
from handrail.conversation.blocks import Json, ToolUse
from handrail.errors import ClosedError, ControlError
from handrail.session.build import open_session
from handrail.session.spec import SessionHost, SessionSpec
from handrail.stdio.streams import MAX_INCOMING
from handrail.testing import ScriptedModel
from handrail.tools.context import Progress
from handrail.tools.events import CallProgress, CallQueued, CallStarted

pytestmark = pytest.mark.anyio


class Lines:
    """Lines of a test; after them the input ends."""

    def __init__(self, *lines: bytes) -> None:
        self._lines = list(lines)

    async def next(self) -> bytes | None:
        return self._lines.pop(0) if self._lines else None


class Sent:
    """What was sent to the editor, which may have gone."""

    def __init__(self, *, is_gone: bool = False) -> None:
        self.lines: list[Mapping[str, Any]] = []
        self._is_gone = is_gone

    async def send(self, line: Mapping[str, Any]) -> None:
        if self._is_gone:
            raise ClosedError("The reader of the output is gone.")
        self.lines.append(line)


async def test_a_line_that_is_too_long_is_refused_unread() -> None:
    sent = Sent()
    connection = EditorConnection(sent)

    await connection.listen(Lines(b"x" * (MAX_INCOMING + 1)))
    await connection.settle()

    [refusal] = sent.lines
    assert (refusal["id"], refusal["error"]["code"]) == (None, -32600)


async def test_a_question_to_an_editor_that_is_gone_has_no_answer() -> None:
    with pytest.raises(ControlError):
        await EditorConnection(Sent(is_gone=True)).ask("session/request_permission", {})


async def test_a_question_ends_with_the_connection() -> None:
    connection = EditorConnection(Sent())
    asking = asyncio.ensure_future(connection.ask("session/request_permission", {}))
    await anyio.wait_all_tasks_blocked()

    connection.close()

    with pytest.raises(ControlError):
        await asking


async def test_an_editor_that_takes_nothing_does_not_hold_up_the_end() -> None:
    class Stuck:
        async def send(self, _line: Mapping[str, Any]) -> None:
            await anyio.sleep_forever()

    async def wait(_params: Json) -> MethodResult:
        await anyio.sleep_forever()
        raise AssertionError

    connection = EditorConnection(Stuck())
    connection.methods = {"wait": wait}
    with anyio.fail_after(10):
        await connection.listen(Lines(b'{"id": 1, "method": "wait"}'))
        connection.close()
        await connection.settle(0)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b'{"id": 1, "error": {"code": 5, "message": "not now"}}', id="an error"),
        pytest.param(b'{"id": 1, "error": null}', id="an error without words"),
    ],
)
async def test_an_error_of_the_editor_is_no_answer(answer: bytes) -> None:
    connection = EditorConnection(Sent())
    asking = asyncio.ensure_future(connection.ask("session/request_permission", {}))
    await anyio.wait_all_tasks_blocked()

    await connection.listen(Lines(b'{"id": true, "result": {}}', answer))

    with pytest.raises(ControlError):
        await asking


async def test_nothing_is_said_of_a_call_while_a_question_about_it_is_open(tmp_path: Path) -> None:
    session = open_session(SessionSpec(cwd=tmp_path), {}, SessionHost(model=ScriptedModel([])))
    updates, use = SessionUpdates(session), ToolUse("b1", "Bash", {"command": "ls"})
    started, progress = CallStarted(use, 0.0), CallProgress(use, Progress("working"), 0.0)
    try:
        announced = [*updates.of(CallQueued(use, 0.0))]
        with updates.question(use):
            meanwhile = [*updates.announce(use), *updates.of(started), *updates.of(progress)]
        afterwards = [*updates.of(started), *updates.of(progress)]
    finally:
        await session.aclose()

    assert [each["sessionUpdate"] for each in announced] == ["tool_call"]
    assert meanwhile == []
    assert [each.get("status") for each in afterwards] == ["in_progress", None]
