"""The questions of a run, for the clients that may answer them."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from handrail.dispatch.approval.choices import ALLOW, DENY, STOP, AnswerChoice, answer_choices
from handrail.dispatch.approval.question import ApprovalAnswer, Question
from handrail.errors import HttpRefusalError
from handrail.session.live.question_json import question_json, read_live_answer
from handrail.tools.permission import Deny

OFFERED = frozenset({ALLOW, STOP, DENY})


class RunQuestions:
    """
    Asks clients; the first answer counts, and without one in time the answer is no.

    No answer changes rules or the call: what a run may do is for the operator of the server to say. `tell` adds a line
    to those of the run.
    """

    who = "person"

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._open: dict[str, tuple[Question, asyncio.Future[ApprovalAnswer]]] = {}
        self.tell: Callable[[dict[str, Any]], None] = lambda _line: None

    def as_json(self) -> list[dict[str, Any]]:
        """The open questions."""
        return [_question_json(question) for question, _ in self._open.values()]

    async def ask(self, question: Question) -> ApprovalAnswer | None:
        """The answer of a client."""
        question = replace(question, proposals=())
        answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        self._open[question.id] = (question, answer)
        self.tell(question_line(question))
        try:
            async with asyncio.timeout(self._patience):
                return await answer
        except TimeoutError:
            return Deny(f"no client answered within {self._patience:g} seconds")
        finally:
            del self._open[question.id]
            self.tell({"type": "control_cancel_request", "request_id": question.id})

    def update(self, question: Question) -> None:
        """Show what automatic checks have said since."""
        if question.id in self._open:
            shown = replace(question, proposals=())
            self._open[question.id] = (shown, self._open[question.id][1])
            self.tell(question_line(shown))

    def answer(self, client: str, said: Mapping[str, Any]) -> None:
        """Take the answer of a client; HttpRefusalError if it does not count."""
        known = self._open.get(str(said.get("question")))
        if known is None or known[1].done():
            raise HttpRefusalError(409, "The question was answered already, or taken back.")
        question, waiting = known
        found = read_live_answer(question, {**said, "person": client}, far_choices(question))
        if isinstance(found, str):
            raise HttpRefusalError(409, found)
        waiting.set_result(found)


def far_choices(question: Question) -> list[AnswerChoice]:
    """The ways in which a client may answer."""
    return [each for each in answer_choices(question) if each.value in OFFERED]


def _question_json(question: Question) -> dict[str, Any]:
    return question_json(question, far_choices(question))


def question_line(question: Question) -> dict[str, Any]:
    """A question as a line of the run, in the format of the control protocol, with what an answer needs."""
    shown = _question_json(question)
    return {
        "type": "control_request",
        "request_id": question.id,
        "request": {
            "subtype": "can_use_tool",
            "tool_name": question.tool,
            "input": shown["input"],
            "tool_use_id": question.use.id,
            "title": shown["title"],
            "decision_reason": question.reason,
            "question": shown,
        },
    }
