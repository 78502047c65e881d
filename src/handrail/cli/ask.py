"""Asks the person at the terminal about calls that rules and mode leave open."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.lazy import lazy
from handrail.tools.permission import Allow, Deny
from handrail.tui.question import Dialog, PermissionQuestion

if TYPE_CHECKING:
    from handrail.dispatch.approval import question_text
    from handrail.dispatch.approval.question import ApprovalAnswer, Question
else:
    question_text = lazy("handrail.dispatch.approval.question_text")


class TerminalHandler:
    """Answers questions of the gate with what the person types."""

    who = "person"

    def __init__(self, dialog: Dialog) -> None:
        self._dialog = dialog

    async def ask(self, question: "Question") -> "ApprovalAnswer":
        """The person's answer."""
        if question.form:
            return await self._fill_in(question)
        reply = await self._dialog.ask(permission_question(question))
        if reply.choice == "no":
            return Deny(reply.words) if reply.words else question.plain_no()
        if reply.choice in ("agent", "session"):
            return question.allow_for(reply.choice)
        return question.always() if reply.choice == "always" else Allow()

    async def _fill_in(self, question: "Question") -> "ApprovalAnswer":
        answers = await self._dialog.fill_in(question.form)
        if answers is None:
            return Deny("the terminal is gone")
        several = {field.question for field in question.form if field.several}
        return question.filled_in(
            {text: chosen if text in several else chosen[0] for text, chosen in answers.items() if chosen}
        )

    def update(self, question: "Question") -> None:
        """The question on the screen stays as it is."""


def permission_question(question: "Question") -> PermissionQuestion:
    """What the person reads: the whole call, why it is asked about, and what "always" would change."""
    return PermissionQuestion(
        title=question_text.question_title(question),
        input=question.input,
        reason=question.reason,
        risk=question_text.risk_text(question),
        always=question_text.always_text(question.proposals),
        agent=", ".join(each.text for each in question.proposals) if question.agent.path else "",
        document=question.document.body if question.document else "",
    )


def asking_terminal(wanted: bool | None, warn: Callable[[str], None]) -> int | None:
    """
    The descriptor of the terminal to ask on; None = no person is asked.

    Unless it is `wanted` or not, a person is asked if standard input and standard error are a terminal and the program
    does not run in its background. If it is wanted, the terminal of the process will do.
    """
    if wanted is False:
        return None
    if os.isatty(0) and os.isatty(2) and (wanted or is_foreground(0)):
        return 0
    if not wanted:
        return None
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        warn("--ask: there is no terminal to ask on, so calls that need a yes are refused. --allowedTools allows some.")
        return None


def is_foreground(terminal: int) -> bool:
    """Whether what is typed on a terminal reaches this process; one in the background would be stopped for reading."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:  # it is not the terminal that controls this process, so it cannot stop it
        return True
