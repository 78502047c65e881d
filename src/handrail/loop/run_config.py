"""The configuration of a run: model, rails, limits, and the callbacks that take part in it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from handrail.conversation.blocks import Json
from handrail.conversation.messages import AssistantMessage, Attachment
from handrail.conversation.request import Effort, Request, ThinkingOptions
from handrail.conversation.stream import StreamEvent, Usage
from handrail.dispatch.executor import DEFAULT_RAILS, DEFAULT_SCHEDULING
from handrail.dispatch.gate import Rails
from handrail.dispatch.schedule import Scheduling
from handrail.loop.compaction.plan import Compact
from handrail.loop.limits import NO_LIMITS, Limits
from handrail.loop.usage import Cost, no_price
from handrail.records import record
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome

if TYPE_CHECKING:
    from handrail.hooks.runner import Hooks
    from handrail.loop.complete_prompt import CompletePrompt
    from handrail.loop.events import LoopEvent


class Stream(Protocol):
    """One answer as it arrives. Closing it drops the connection."""

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    def aclose(self) -> Awaitable[Any]: ...


class Model(Protocol):
    """A language model. `plain` asks for the answer in one piece; a model that cannot may ignore it."""

    def stream(self, request: Request, *, plain: bool = False) -> Stream: ...


ChooseAnswer: TypeAlias = Callable[[AssistantMessage, AssistantMessage], Awaitable[AssistantMessage]]
"""Picks one of two answers to the same request, before any tool of them runs."""

TurnAttachments: TypeAlias = Callable[[Sequence[Outcome], RunContext], Iterable[Attachment]]
"""
Attachments to the user's turn after the results of these calls (no calls = after a prompt).

Each is in the history, and in the transcript, before the next one is asked for.
"""

AfterCalls: TypeAlias = Callable[[Sequence[Outcome], RunContext], Coroutine[Any, Any, Sequence[Attachment]] | None]
"""Attachments that take a moment to find out after these calls; None = there is nothing to wait for."""

FirstAttachments: TypeAlias = Callable[[RunContext], Iterable[Attachment]]
"""Attachments before the first prompt of a conversation: environment facts and memory."""

SideUsage: TypeAlias = Callable[[], Iterable[tuple[str, Usage]]]
"""Usage by model of side requests since the last call; it counts toward the run."""

Prepare: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Prepares what a run needs before it starts, such as connections to servers. Interrupting the run cancels it."""


class StructuredOutput(Protocol):
    """A JSON Schema that the last answer must fit."""

    @property
    def schema(self) -> bytes: ...

    def check(self, text: str) -> tuple[Any, str]:
        """The value, and what is wrong with the text (empty = nothing)."""
        ...

    def check_value(self, value: Any) -> tuple[Any, str]:
        """The value as it is handed to the caller, and what is wrong with it (empty = nothing)."""
        ...


class RunObserver(Protocol):
    """Watches the runs of all agents of a session from the inside. Its methods are quick and never raise."""

    def run_begins(self, context: RunContext) -> None:
        """A run begins; nothing of it has happened."""
        ...

    def on_event(self, event: "LoopEvent", context: RunContext) -> None:
        """A run emits an event, before any reader sees it; of an answer, only its end."""
        ...

    def run_left(self, context: RunContext) -> None:
        """The reader left a run before its end."""
        ...


@record
class RequestOptions:
    """How the model is asked. Empty or None = the provider's default."""

    max_tokens: int | None = None
    thinking: ThinkingOptions = field(default=ThinkingOptions())
    effort: Effort | None = None
    betas: tuple[str, ...] = ()
    task_budget: int | None = None


@record
class RunConfig:
    """Everything about a run that does not change while it runs."""

    model: Model
    model_name: str
    system: tuple[str, ...] = ()
    options: RequestOptions = RequestOptions()
    rails: Rails = DEFAULT_RAILS
    scheduling: Scheduling = DEFAULT_SCHEDULING
    limits: Limits = NO_LIMITS
    cost: Cost = no_price
    prepare: Prepare | None = None
    complete_prompt: "CompletePrompt | None" = None
    first_attachments: FirstAttachments = lambda _run: ()
    reattach: FirstAttachments = lambda _run: ()
    """Attachments after a summary has replaced the history, in which they may be lost: task list and plan."""
    attach: TurnAttachments = lambda _outcomes, _run: ()
    after_calls: AfterCalls | None = None
    compact: Compact | None = None
    side_usage: SideUsage = tuple
    agent_usage: SideUsage = tuple
    hooks: "Hooks | None" = None
    can_defer: bool = False
    """Hooks may defer a call: the run ends before it, and the next one retries it."""
    first_words: str = ""
    """What stands before the first prompt of a new conversation, as if the user had said it."""
    background_tasks: Callable[[], list[Json]] = list
    session_crons: Callable[[], list[Json]] = list
    """What runs in the background, for hooks."""
    observer: RunObserver | None = None
    choose_answer: ChooseAnswer | None = None
    structured: StructuredOutput | None = None
    structured_retries: int = 3
    stream_attempts: int = 3
    """How often one turn is asked for, the first included, when answers break off after a call was handed out."""
