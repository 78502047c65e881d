"""The protocol for keeping a conversation: everything is written before it is shown."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from handrail.conversation.blocks import AssistantBlock, ToolResult, ToolUse
from handrail.conversation.messages import Message, UserMessage

PUT_OFF = "A hook put this call off, and it was not decided about. It has not run. Ask for it again if it is needed."
"""The result of a deferred call as long as it has no other."""


class Transcript(Protocol):
    """
    Keeps a conversation on disk. Each method has written when it returns.

    A transcript that cannot write keeps the reason in `failure` and does not raise, except in `start_call`: a call that
    cannot be recorded must not start. The loop checks `failure` before it shows anything more.
    """

    @property
    def failure(self) -> Exception | None: ...

    def add_message(self, message: Message) -> None:
        """Add a message of the history."""
        ...

    def replace_messages(self, messages: Sequence[Message]) -> None:
        """Replace all messages of the history by these."""
        ...

    def add_block(self, message_id: str, model: str, block: AssistantBlock, slot: int) -> None:
        """Add a complete block of an answer that is still arriving."""
        ...

    def discard_blocks(self) -> None:
        """Discard the blocks since the last message; the effects of their calls remain."""
        ...

    def start_call(self, use: ToolUse) -> None:
        """Record that a call starts; from here on there may be effects. Raises SessionError if it cannot be written."""
        ...

    def change_folder(self, cwd: str) -> None:
        """Record the working folder of later calls."""
        ...

    def end_call(self, result: ToolResult, facts: Mapping[str, Any]) -> None:
        """Record the result of a call; `facts` say how it ended and when, for people who look at the run."""
        ...

    def add_fact(self, event: str, values: Mapping[str, Any]) -> None:
        """Record what happens to the run beside what is said. One that cannot be written is lost, and fails nothing."""
        ...

    def defer_call(self, use: ToolUse, result: ToolResult) -> None:
        """Record a deferred call: it has not begun, and `result` stands for its own until there is one."""
        ...

    def amend_results(self, results: UserMessage) -> None:
        """Replace the newest message: a deferred call has its own result now."""
        ...
