"""What a run is given: a model, tools, rails, limits, and the few points where others may step in."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from handrail.conversation.blocks import Json, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, Message
from handrail.conversation.request import Effort, History, Request, Thinking, ToolChoice
from handrail.conversation.stream import StreamEvent, Usage
from handrail.dispatch.executor import DEFAULT_RAILS, DEFAULT_SCHEDULING
from handrail.dispatch.gate import Rails
from handrail.dispatch.schedule import Scheduling
from handrail.loop.limits import NO_LIMITS, Limits
from handrail.loop.spending import Cost, no_price
from handrail.records import record
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome

if TYPE_CHECKING:
    from handrail.hooks.answers import Answer
    from handrail.hooks.news import HookNews


class Stream(Protocol):
    """One answer as it arrives. Closing it drops the connection."""

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    def aclose(self) -> Awaitable[Any]: ...


class Model(Protocol):
    """Whoever answers. `plain` asks for the answer in one piece; a model that cannot may ignore it."""

    def stream(self, request: Request, *, plain: bool = False) -> Stream: ...


Choose: TypeAlias = Callable[[AssistantMessage, AssistantMessage], Awaitable[AssistantMessage]]
"""Picks one of two answers to the same request, before any tool of them runs."""

Attach: TypeAlias = Callable[[Sequence[Outcome]], Iterable[Attachment]]
"""What the program wants to add to the user's turn, after the results of these calls (none: after a prompt)."""

Opening: TypeAlias = Callable[[], Iterable[Attachment]]
"""What stands before the first prompt of a conversation: facts about the place, memory."""


def nothing_attached(_outcomes: Sequence[Outcome]) -> Iterable[Attachment]:
    """For programs that have nothing to add."""
    return ()


class RunHooks(Protocol):
    """Asked at the turning points of a run: before a prompt, before it stops, around a summary."""

    def wants(self, *events: str) -> bool:
        """Whether one of these events concerns anybody. Asked often."""
        ...

    def fire(
        self,
        event: str,
        fields: Json,
        run: RunContext,
        *,
        use: ToolUse | None = None,
        tell: "Callable[[HookNews], None]",
    ) -> "Coroutine[Any, Any, Answer]":
        """What is thought of an event, which `fields` describe. `use` is the call that it is about."""
        ...


async def nobody_minds() -> bool:
    """For runs without hooks."""
    return True


@record
class Situation:
    """
    What somebody who shortens the history looks at. `forced`: the model refused the request as too long.

    `may_summarise` is asked before a summary takes the history's place. `wish`: a person asked for a summary, and may
    have said what it shall hold; whoever cannot make one raises HandrailError then.
    """

    history: History
    model: str
    context_tokens: int
    forced: bool = False
    may_summarise: Callable[[], Awaitable[bool]] = nobody_minds
    wish: str | None = None


@record
class Shortened:
    """The messages that take the history's place. `kind` is `micro` or `full`; `note` is for people."""

    messages: Sequence[Message]
    kind: str
    note: str = ""


SpentAside: TypeAlias = Callable[[], Iterable[tuple[str, Usage]]]
"""What was asked of which model beside the conversation since the last time: it goes on the same bill."""

Compact: TypeAlias = Callable[[Situation], Coroutine[Any, Any, Shortened | None]]
"""Asked before each request; None = leave the history as it is. Must be quick when there is nothing to do."""


class StructuredOutput(Protocol):
    """A JSON Schema that the last answer must fit."""

    @property
    def schema(self) -> bytes: ...

    def check(self, text: str) -> tuple[Any, str]:
        """The value, and what is wrong with the text (empty = nothing)."""
        ...


@record
class Options:
    """How the model is asked. Empty or None = the provider's default."""

    max_tokens: int | None = None
    thinking: Thinking = field(default=Thinking())
    effort: Effort | None = None
    tool_choice: ToolChoice = field(default=ToolChoice())
    betas: tuple[str, ...] = ()
    task_budget: int | None = None


@record
class Setup:
    """Everything about a run that does not change while it runs."""

    model: Model
    model_name: str
    system: tuple[str, ...] = ()
    options: Options = Options()
    rails: Rails = DEFAULT_RAILS
    scheduling: Scheduling = DEFAULT_SCHEDULING
    limits: Limits = NO_LIMITS
    cost: Cost = no_price
    opening: Opening = tuple
    attach: Attach = nothing_attached
    compact: Compact | None = None
    spent_aside: SpentAside = tuple
    hooks: RunHooks | None = None
    defers: bool = False
    """Hooks may put off a call: the run ends before it, and the next one takes it up again."""
    tasks: Callable[[], list[Json]] = list
    """What runs in the background, as hooks are told of it."""
    choose: Choose | None = None
    structured: StructuredOutput | None = None
    structured_retries: int = 3
    stream_attempts: int = 3
    """How often one turn is asked for, the first included, when answers break off after a call was handed out."""
