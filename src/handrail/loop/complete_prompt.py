"""What becomes of a prompt before the model sees it: its commands run, its files are read, or it is refused."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from handrail.conversation.messages import Attachment, UserMessage
from handrail.loop.events import Denial
from handrail.records import record
from handrail.tools.abort import AbortSignal


@record
class CompletedPrompt:
    """A prompt as it enters the history. `notes` go to the model with it, `warnings` to the person."""

    message: UserMessage
    notes: tuple[Attachment, ...] = ()
    warnings: tuple[str, ...] = ()


@record
class PromptRefusal:
    """A prompt that does not reach the model. The text is what the run answers."""

    text: str
    denials: tuple[Denial, ...] = ()


CompletePrompt: TypeAlias = Callable[[AbortSignal], Coroutine[Any, Any, CompletedPrompt | PromptRefusal]]
"""Completes the prompt of a run, after the hooks that may refuse its command. Interrupting the run cancels it."""
