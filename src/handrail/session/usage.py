"""What a session has used so far, and how full the window of its model is."""

from collections.abc import Callable
from typing import Any

from handrail.loop.compaction.stubs import estimate
from handrail.loop.events import Compacted, LoopEvent, MessageComplete, RunEnded
from handrail.loop.usage import ModelUsage
from handrail.session.conversation import Conversation


class SessionUsage:
    """Counts what the events of a conversation tell."""

    EVENTS = frozenset({MessageComplete, Compacted, RunEnded})

    def __init__(self, conversation: Conversation, window: Callable[[str], int]) -> None:
        self._conversation = conversation
        self._window = window
        self.tokens = 0
        """What the newest request and its answer filled of the window."""
        self.spent: dict[str, ModelUsage] = {}

    def count(self, event: LoopEvent) -> None:
        """Take in an event of a run."""
        match event:
            case MessageComplete(usage=usage):
                self.tokens = usage.whole_input + usage.whole_output
            case Compacted():
                self.tokens = estimate(self._conversation.messages)
            case RunEnded(spent=spent):
                for model, used in spent.items():
                    self.spent[model] = self.spent.get(model, ModelUsage()).with_all(used)
            case _:
                pass

    def window(self) -> dict[str, Any]:
        """How full the model's window is, in the form that programs know."""
        model = self._conversation.config.model_name
        size = self._window(model)
        tokens = self.tokens or estimate(self._conversation.messages)  # nothing was asked of a resumed one yet
        return {
            "categories": [
                {"name": "Messages", "tokens": tokens, "color": "text"},
                {"name": "Free space", "tokens": max(size - tokens, 0), "color": "inactive"},
            ],
            "totalTokens": tokens,
            "maxTokens": size,
            "rawMaxTokens": size,
            "percentage": round(100 * tokens / size, 1),
            "model": model,
            "gridRows": [],
        }
