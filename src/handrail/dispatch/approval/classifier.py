"""A classifier that has to be asked, for example a model: its yes may let a call pass in mode auto, nothing else."""

import asyncio
import logging
from typing import Protocol

from handrail.records import record

log = logging.getLogger(__name__)

PATIENCE = 20.0
"""Seconds after which a classifier counts as absent, and a person is asked instead."""


@record
class Classification:
    """What a classifier thinks of a call, and why."""

    safe: bool
    reason: str = ""


class Classifier(Protocol):
    """Judges a call by a text that says what it would do. The text is data: whoever wrote it may be hostile."""

    @property
    def name(self) -> str:
        """The name under which its approvals are recorded."""
        ...

    async def classify(self, text: str) -> Classification | None:
        """Its ruling; None when it cannot tell or cannot be reached."""
        ...


async def ask_classifier(classifier: Classifier, text: str) -> Classification | None:
    """The ruling, or None in good time."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await classifier.classify(text)
    except TimeoutError:
        log.warning("the classifier %s did not answer within %g seconds", classifier.name, PATIENCE)
        return None
