"""
Questions in front of a person: a queue that any front end can draw, and the handler that fills it.

Front ends may live in another thread: `answer` can be called from anywhere.
"""

from collections.abc import Callable

from handrail.dispatch.approval.once import ResolveOnce
from handrail.dispatch.approval.question import Answer, Question


class Dialog:
    """One question that is shown. The first answer counts."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._once: ResolveOnce[Answer] = ResolveOnce()

    def answer(self, answer: Answer) -> bool:
        """Whether this was the answer: false when it was answered or taken back before."""
        return self._once.resolve("person", answer)

    def claim(self) -> bool:
        """Hold the question while the answer is being worked out; then it must be answered."""
        return self._once.claim("person")

    @property
    def is_resolved(self) -> bool:
        """Whether it needs no answer any more."""
        return self._once.is_resolved or self._once.winner == "taken back"

    def take_back(self) -> None:
        """Nobody needs the answer any more."""
        self._once.claim("taken back")

    async def wait(self) -> Answer:
        """The person's answer."""
        return await self._once.wait()


class DialogQueue:
    """The open questions, oldest first. `at_once` is how many are in front; None = all."""

    def __init__(self, at_once: int | None = 1) -> None:
        self._dialogs: dict[str, Dialog] = {}
        self._listeners: list[Callable[[], None]] = []
        self._at_once = at_once

    @property
    def waiting(self) -> tuple[Dialog, ...]:
        """Every open question."""
        return tuple(self._dialogs.values())

    @property
    def front(self) -> tuple[Dialog, ...]:
        """The questions to show now."""
        return self.waiting[: self._at_once]

    def push(self, dialog: Dialog) -> None:
        """Add a question at the end."""
        self._dialogs[dialog.question.id] = dialog
        self._tell()

    def update(self, question: Question) -> bool:
        """Change an open question; false when it is not open."""
        dialog = self._dialogs.get(question.id)
        if dialog is None:
            return False
        dialog.question = question
        self._tell()
        return True

    def remove(self, question_id: str) -> bool:
        """Take a question away; false when it is not open."""
        dialog = self._dialogs.pop(question_id, None)
        if dialog is None:
            return False
        dialog.take_back()
        self._tell()
        return True

    def listen(self, listener: Callable[[], None]) -> None:
        """Be told after every change."""
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()


class Interactive:
    """Asks a person through a queue of dialogs."""

    who = "person"

    def __init__(self, queue: DialogQueue) -> None:
        self.queue = queue

    async def ask(self, question: Question) -> Answer:
        """The person's answer. Cancelled, the dialog goes away."""
        dialog = Dialog(question)
        self.queue.push(dialog)
        try:
            return await dialog.wait()
        finally:
            self.queue.remove(question.id)

    def update(self, question: Question) -> None:
        """Show the question as it is now."""
        self.queue.update(question)
