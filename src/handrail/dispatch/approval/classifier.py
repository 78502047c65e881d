"""The Protocol of a classifier that has to be asked, for example a model; it may allow calls in mode auto only."""

import asyncio
from typing import Protocol

from handrail.conversation.logger import get_logger
from handrail.records import record

log = get_logger(__name__)

CLASSIFIER_TIMEOUT = 20.0
"""Seconds after which the user is asked instead of the classifier."""


@record
class Classification:
    """What a classifier thinks of a call, and why."""

    safe: bool
    reason: str = ""


class Classifier(Protocol):
    """Classifies a call by a text that says what it would do. The text is data, and its author may be hostile."""

    @property
    def name(self) -> str:
        """The name under which its approvals are recorded."""
        ...

    async def classify(self, text: str) -> Classification | None:
        """Classify a call; None when it cannot tell or cannot be reached."""
        ...


async def ask_classifier(classifier: Classifier, text: str) -> Classification | None:
    """The classification, or None after the timeout."""
    try:
        async with asyncio.timeout(CLASSIFIER_TIMEOUT):
            return await classifier.classify(text)
    except TimeoutError:
        log.warning("the classifier %s did not answer within %g seconds", classifier.name, CLASSIFIER_TIMEOUT)
        return None
