"""Who writes down what happens, before anybody is shown it."""

from collections.abc import Sequence
from typing import Protocol

from handrail.conversation.blocks import AssistantBlock, ToolResult, ToolUse
from handrail.conversation.messages import Message, UserMessage

PUT_OFF = "A hook put this call off, and it was not decided about. It has not run. Ask for it again if it is needed."
"""The result of a call that is put off, as long as it has no other."""


class Scribe(Protocol):
    """
    Keeps a conversation. Each method has written when it returns.

    A scribe that cannot write keeps why in `failure` and does not raise, except in `start_call`: a call that cannot be
    written down must not start. Whoever drives the conversation looks at `failure` before showing anything more.
    """

    @property
    def failure(self) -> Exception | None: ...

    def add_message(self, message: Message) -> None:
        """It stands in the history from now on."""
        ...

    def replace_history(self, messages: Sequence[Message]) -> None:
        """These stand in the history now, in place of all before."""
        ...

    def add_block(self, message_id: str, model: str, block: AssistantBlock, slot: int) -> None:
        """A block is complete, of an answer that is still being given."""
        ...

    def discard_blocks(self) -> None:
        """The blocks since the last message are void; what their calls did is not."""
        ...

    def start_call(self, use: ToolUse) -> None:
        """
        The call starts now; from here on there may be effects.

        Raises:
            SessionError: it cannot be written down.
        """
        ...

    def change_folder(self, cwd: str) -> None:
        """Later calls start in this folder."""
        ...

    def end_call(self, result: ToolResult) -> None:
        """The call is over."""
        ...

    def defer_call(self, use: ToolUse, result: ToolResult) -> None:
        """The call is put off: it has not begun, and until it has its own result this one stands for it."""
        ...

    def amend_last(self, results: UserMessage) -> None:
        """These stand in the place of the newest message: a call that was put off has its own result now."""
        ...
