"""Nobody is here: every question is a no, and is kept for the person who reads the result."""

from handrail.dispatch.approval.question import Answer, Question
from handrail.tools.permission import Deny


class Headless:
    """Refuses what it is asked, and says which rule would have let it pass."""

    who = "nobody"

    def __init__(self) -> None:
        self.asked: list[Question] = []
        """What was refused because nobody could be asked."""

    async def ask(self, question: Question) -> Answer:
        """A no, with its reason."""
        self.asked.append(question)
        return Deny(f"{question.reason}, and nobody is here to be asked")

    def update(self, question: Question) -> None:
        """Nobody reads it."""


def advice(question: Question) -> str:
    """What a person could do so that the call passes next time."""
    if not question.proposals:
        return f"{question.summary} was refused: {question.reason}. No rule can allow it; run it with somebody to ask."
    rules = " and ".join(f"{proposal.text} in {proposal.where}" for proposal in question.proposals)
    return f"{question.summary} was refused: {question.reason}. To allow it: {rules}."
