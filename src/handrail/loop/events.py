"""
The events of a run, for any front end. In this order:

    RunStarted
      RequestSent
        StreamEvent*            as the model says it: BlockStart, Delta, BlockEnd, StreamRetry ...
        BlockComplete*          one per block, as soon as it is complete
        CallEvent*              in between: queued, started, progress, finished (in the order they finish)
        MessageComplete         the answer is whole
        CallEvent*
        ResultsComplete         all results, in the order of the calls
      AnswerDiscarded           instead: the answer broke off after a call was handed out, and is asked for again
      MessageAdded*             what the program or the user added to the next request
      ...
    RunEnded                    exactly once, the last event

No decision depends on events. Readers may skip StreamEvents: BlockComplete and MessageComplete contain everything.
"""

from collections.abc import Mapping
from dataclasses import field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from handrail.conversation.blocks import AssistantBlock, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, UserMessage
from handrail.conversation.request import Chain, Request
from handrail.conversation.stream import StreamEvent, StreamFailure, Usage
from handrail.hooks.news import HookNews
from handrail.loop.state import WHAT_HAPPENED, Move, Why
from handrail.loop.usage import ModelUsage
from handrail.records import record
from handrail.tools.events import CallEvent
from handrail.tools.outcome import Outcome
from handrail.tools.permission import Decision, Strength, Update
from handrail.tools.wording import several

SYNTHETIC = "<synthetic>"
"""The model of messages that no model wrote."""


@record
class RunStarted:
    """A prompt was accepted; no request has been sent yet. `tools` are all of the run, also those held back."""

    prompt: UserMessage
    model: str
    tools: tuple[str, ...]
    cwd: Path
    chain: Chain


@record
class RequestSent:
    """
    The model is asked. `turn` counts from 1; `attempt` above 1 asks again for the same turn, `plain` without streaming.

    `messages` is the length of the history, `context_tokens` what the request before filled of the window.
    """

    request: Request
    turn: int
    why: Why
    attempt: int = 1
    plain: bool = False
    messages: int = 0
    context_tokens: int = 0

    @property
    def chain(self) -> Chain:
        """The chain of requests it belongs to, and how deep in it."""
        return self.request.chain

    @property
    def prefix(self) -> str:
        """A digest of system prompt and tools: equal from turn to turn unless the tools changed."""
        digest = sha256()
        for part in self.request.system:
            digest.update(part.encode("utf-8", "replace") + b"\0")
        for tool in self.request.tools:
            digest.update(tool.definition + b"\0")
        digest.update(repr(self.request.activated).encode())
        return digest.hexdigest()


@record
class BlockComplete:
    """One block of the answer is complete; blocks of one answer share `message_id`."""

    message_id: str
    model: str
    block: AssistantBlock
    slot: int


@record
class MessageComplete:
    """The answer is complete; its calls may still run. `dollars` is None when the price is not known."""

    message_id: str
    message: AssistantMessage
    usage: Usage
    dollars: float | None
    turn: int


@record
class AlternativesOffered:
    """Two answers to the same request; the caller has been asked which one is to count."""

    first: AssistantMessage
    second: AssistantMessage
    turn: int


@record
class AnswerDiscarded:
    """The answer broke off after calls were handed out. It is asked for again; what it did is not done twice."""

    failure: StreamFailure
    calls: tuple[ToolUse, ...]
    turn: int
    attempt: int


@record
class ResultsComplete:
    """The results of all calls of the answer, in the order of the calls, as they stand in history now."""

    message: UserMessage
    outcomes: tuple[Outcome, ...]
    turn: int


@record
class MessageAdded:
    """A message that handrail added to the user's turn: a reminder, a queued note, an interruption."""

    message: UserMessage | Attachment


@record
class QueuedMessageTaken:
    """A message that came while a turn ran is now part of the history."""

    message: UserMessage


@record
class Summarising:
    """A summary is being made, which may take a while; with `on` False, that is over, whether or not it succeeded."""

    on: bool


@record
class Compacted:
    """The history was shortened: `micro` (stubs) or `full` (a summary), `auto` or, if a person asked, `manual`."""

    kind: str
    messages_before: int
    messages_after: int
    tokens_before: int
    note: str = ""
    trigger: str = "auto"


@record
class Interrupted:
    """The run was stopped; RunEnded follows when all its work has stopped."""

    why: Why


@record
class ConversationReset:
    """Another session began in the place of the one `before`: nothing was said in it yet."""

    session_id: str
    before: str


@record
class Notice:
    """Something a person should know, for example that a limit cannot be kept."""

    text: str
    level: str = "warning"


@record
class Denial:
    """
    A call that was not allowed. `remedy` would have allowed it.

    `unasked`: there was no one to ask about it; `by_person`: the user said no. `broken`: the rule that may have meant
    it and cannot work as it is written, with its place.
    """

    use: ToolUse
    reason: str
    remedy: tuple[Update, ...] = ()
    unasked: bool = False
    by_person: bool = False
    broken: str = ""


def denial_of(use: ToolUse, decision: Decision) -> Denial:
    """The denial of a call by this decision."""
    last = decision.opinions[-1] if decision.opinions else None
    unasked = last is not None and last.strength is Strength.UNANSWERED
    by_person = last is not None and last.strength is Strength.PERSON and last.layer == "person"
    broken = next((each.source for each in decision.opinions if each.layer == "broken rule"), "")
    return Denial(use, decision.reason, decision.remedy, unasked, by_person, broken)


@record
class RunEnded:
    """
    The run is over. `why` says how; `text` is the text of the last answer, `structured` the checked value if asked for.

    `seconds` is the whole time, `model_seconds` the part spent waiting for the model. `dollars` is None when any
    answer had no known price.
    """

    move: Move
    why: Why
    text: str = ""
    structured: Any = None
    turns: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0
    spent: Mapping[str, ModelUsage] = field(default_factory=dict)
    dollars: float | None = 0.0
    denials: tuple[Denial, ...] = ()
    failure: StreamFailure | None = None
    problem: str = ""
    stop_reason: str = ""
    deferred: ToolUse | None = None
    """The call that a hook deferred: the run ended before it."""
    own: ModelUsage | None = None
    """What was used without sub-agents; None = there were none."""

    @property
    def is_error(self) -> bool:
        """Whether the run ended without an answer."""
        return self.move is not Move.STOPPED

    @property
    def report(self) -> str:
        """What went wrong, in one line for people; the name of the reason if there is no text."""
        parts: tuple[str, ...] = (self.problem, self.failure.report if self.failure else "")
        if self.why is Why.MAX_TURNS and not any(parts):
            return f"the limit of {several(self.turns, 'turn')} was reached"
        if self.why is Why.UNFIT_ANSWERS:
            parts = (WHAT_HAPPENED[self.why], *parts)
        return ": ".join(filter(None, parts)) or WHAT_HAPPENED.get(self.why, self.why.value)


LoopEvent: TypeAlias = (
    RunStarted
    | RequestSent
    | StreamEvent
    | BlockComplete
    | MessageComplete
    | AlternativesOffered
    | AnswerDiscarded
    | CallEvent
    | ResultsComplete
    | MessageAdded
    | QueuedMessageTaken
    | Summarising
    | Compacted
    | Interrupted
    | ConversationReset
    | Notice
    | HookNews
    | RunEnded
)
