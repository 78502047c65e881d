"""Dialogs: a queue that any front end can draw, answered from any thread."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.interactive import Dialog, DialogQueue, Interactive
from handrail.dispatch.approval.question import Question
from handrail.permissions.risk import Level, Risk
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.permission import Allow, Deny, Verdict
from tests.dispatch.approval.desk import Desk, until

pytestmark = pytest.mark.anyio


def question(number: int) -> Question:
    return Question(f"q{number}", ToolUse("1", "Bash", {}), "Bash(ls)", "why not", Risk(Level.LOW))


@pytest.mark.proves("G41")
async def test_the_queue_can_be_filled_changed_and_emptied_without_any_front_end() -> None:
    queue, seen = DialogQueue(), list[list[str]]()
    queue.listen(lambda: seen.append([dialog.question.note or dialog.question.id for dialog in queue.waiting]))

    for number in (1, 2):
        queue.push(Dialog(question(number)))
    assert queue.update(replace(question(2), note="checked"))
    assert queue.remove("q1")

    assert not queue.remove("q1")
    assert not queue.update(question(1))
    assert seen == [["q1"], ["q1", "q2"], ["q1", "checked"], ["checked"]]


async def test_one_dialog_is_in_front_or_as_many_as_wanted() -> None:
    for at_once, shown in ((1, ["q1"]), (2, ["q1", "q2"]), (None, ["q1", "q2", "q3"])):
        queue = DialogQueue(at_once)
        for number in (1, 2, 3):
            queue.push(Dialog(question(number)))

        assert [dialog.question.id for dialog in queue.front] == shown


@pytest.mark.proves("G38", "G8")
async def test_the_next_question_comes_forward_when_the_first_is_answered(tmp_path: Path) -> None:
    queue = DialogQueue()
    desk = Desk(tmp_path, handler=Interactive(queue))
    first, second = (asyncio.create_task(desk.bash(command)) for command in ("npm publish", "npm ci"))
    await until(lambda: len(queue.waiting) == 2)

    [dialog] = queue.front
    assert dialog.question.input == {"command": "npm publish"}
    assert dialog.answer(Allow())
    assert not dialog.answer(Deny())
    assert (await first).verdict is Verdict.ALLOW

    [dialog] = queue.front
    assert dialog.question.input == {"command": "npm ci"}
    dialog.answer(Deny("not now"))
    assert (await second).reason == "not now"
    assert queue.waiting == ()


async def test_a_front_end_in_another_thread_can_answer(tmp_path: Path) -> None:
    queue = DialogQueue()

    def draw() -> None:
        for dialog in queue.front:
            threading.Thread(target=dialog.answer, args=(Allow(),)).start()

    queue.listen(draw)

    decision = await asyncio.wait_for(Desk(tmp_path, handler=Interactive(queue)).bash("npm publish"), 5)

    assert decision.verdict is Verdict.ALLOW


async def test_a_dialog_that_was_taken_back_is_told_so(tmp_path: Path) -> None:
    queue, signal = DialogQueue(), AbortSignal()
    asking = asyncio.create_task(Desk(tmp_path, handler=Interactive(queue)).bash("npm publish", abort=signal))
    await until(lambda: queue.waiting)
    [dialog] = queue.front
    before = dialog.is_resolved
    signal.abort(AbortReason.USER)
    await asking

    assert (before, dialog.is_resolved) == (False, True)
    assert not dialog.claim()
    assert not dialog.answer(Allow())


async def test_a_dialog_can_be_held_while_the_answer_is_worked_out() -> None:
    dialog = Dialog(question(1))

    assert dialog.claim()
    assert dialog.answer(Allow())
    assert await dialog.wait() == Allow()
