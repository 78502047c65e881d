"""Events of calls, as they happen. Front ends draw them; nothing decides by them."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from handrail.conversation.blocks import Json, ToolUse
from handrail.records import record
from handrail.tools.cards import Card
from handrail.tools.context import Progress
from handrail.tools.outcome import Outcome


class CallCards(Protocol):
    """Makes the cards of one call when a front end draws them. Never raises, whatever the tool does."""

    def use(self) -> Card:
        """The call as the model asked for it."""
        ...

    def progress(self, so_far: Sequence[Progress]) -> Card:
        """The running call."""
        ...

    def end(self, outcome: Outcome, progress: Sequence[Progress]) -> Card:
        """Its result, refusal or error."""
        ...

    def group(self, inputs: Sequence[Json]) -> Card | None:
        """Several calls of the same tool as one; None = each by itself."""
        ...


@record
class CallQueued:
    """The model requested the call."""

    use: ToolUse
    at: float
    cards: CallCards | None = None

    @property
    def card(self) -> Card:
        """How it is shown."""
        return self.cards.use() if self.cards else Card(self.use.name)


@record
class CallStarted:
    """The call starts. `interruptible`: a new message of the user would stop it."""

    use: ToolUse
    at: float
    cards: CallCards | None = None
    interruptible: bool = False

    @property
    def card(self) -> Card:
        """How it is shown."""
        return self.cards.use() if self.cards else Card(self.use.name)


@record
class CallProgress:
    """The call reports progress. Never after its end."""

    use: ToolUse
    progress: Progress
    at: float
    cards: CallCards | None = None
    so_far: Sequence[Progress] = ()

    @property
    def card(self) -> Card:
        """How its progress is shown."""
        return self.cards.progress(self.so_far) if self.cards else Card(self.use.name, self.progress.message)


@record
class CallFinished:
    """The call is over; its result may still wait for those of earlier calls."""

    outcome: Outcome
    at: float
    cards: CallCards | None = None
    progress: Sequence[Progress] = ()

    @property
    def card(self) -> Card:
        """How its end is shown."""
        if self.cards is None:
            return Card(self.outcome.use.name, self.outcome.status.value)
        return self.cards.end(self.outcome, self.progress)


CallEvent: TypeAlias = CallQueued | CallStarted | CallProgress | CallFinished


def group_card(queued: Sequence[CallQueued]) -> Card | None:
    """Several calls of one tool as a single card, if the tool has one."""
    cards = queued[0].cards if len(queued) > 1 else None
    return cards.group([event.use.input for event in queued]) if cards else None
