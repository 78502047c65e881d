"""The journal of one turn: calls that discarded answers had started, and which of them the retry did not repeat."""

from handrail.conversation.blocks import Json, Text
from handrail.conversation.messages import Attachment
from handrail.dispatch.retry_journal import RetryJournal
from handrail.tools.outcome import Outcome


class TurnJournal(RetryJournal):
    """Also remembers which started calls were not claimed by the retry, so that the model can be told of them."""

    def __init__(self) -> None:
        super().__init__()
        self._open: list[tuple[str, Json, Outcome | None]] = []

    def record(self, tool: str, raw: Json, outcome: Outcome | None) -> None:
        super().record(tool, raw, outcome)
        self._open.append((tool, raw, outcome))

    def claim(self, tool: str, raw: Json) -> tuple[bool, Outcome | None]:
        known, outcome = super().claim(tool, raw)
        if known:
            self._open.remove(next(entry for entry in self._open if entry[:2] == (tool, raw)))
        return known, outcome

    @property
    def lost_calls(self) -> Attachment | None:
        """A message that lists them for the model; None if there are none."""
        if not self._open:
            return None
        lines = [
            f"- {tool} {raw}: " + ("it was cut off; what it did is not known" if outcome is None else "it ran")
            for tool, raw, outcome in self._open
        ]
        text = "These calls had begun for an answer that broke off and was given up:\n" + "\n".join(lines)
        return Attachment("given_up_calls", (Text(f"{text}\nLook before you repeat them."),))
